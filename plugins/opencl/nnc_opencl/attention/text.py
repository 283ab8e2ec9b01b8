"""Kernels of attention as OpenCL C (Milakov and Gimelshein 2018, Dao et al. 2022).

A group of work items has a panel of queries, or of keys, in which neighbours belong to neighbouring queries or keys.
It goes through the other side block by block, with scores in local memory.  On CPUs a group is one item and computes in
vectors; on GPUs all items share the elements of each step, and a barrier ends it.
"""

from __future__ import annotations

SHARED = """
#define EACH(n, count) for (int n = item; n < (int)(count); n += ITEMS)
#define ROW(panel, row) ((panel) + (row) * WIDTH)
#define HIDDEN (vector)(-INFINITY)

/* Rows of a matrix as columns of a panel; zeros where there are none. */
static inline void turn(__global const real *from, long row, long column, int count, int features, __local real *to,
                        int item) {
  EACH(n, features * WIDTH) {
    const int lane = n / features, feature = n % features;
    to[feature * WIDTH + lane] = lane < count ? from[lane * row + feature * column] : (real)0;
  }
}

/* The first columns of a panel as rows of a matrix. */
static inline void turn_back(__local const real *from, real scale, __global real *to, long row, long column, int count,
                             int features, int item) {
  EACH(n, features * count) {
    const int lane = n / features, feature = n % features;
    to[lane * row + feature * column] = from[feature * WIDTH + lane] * scale;
  }
}

static inline void fill(__local real *to, int count, real value, int item) {
  EACH(n, count) to[n] = value;
}
"""

LAY_MASK = """
/* What is added to a block of scores: `lanes` elements of the mask are apart by `across`, `rows` by `along`. */
static inline void lay_mask(__global const masked *mask, long across, int lanes, long along, int rows,
                            __local real *bias, int item) {
  EACH(n, BLOCK * WIDTH) {
    const int lane = n / BLOCK, row = n % BLOCK;
    if (lane < lanes && row < rows) bias[row * WIDTH + lane] = ADDED(mask[lane * across + row * along]);
  }
}
"""

TILE = """
/* %(comment)s */
static inline void %(name)s(__global const real *a, __local const real *b, int steps, __local real *c) {
  vector %(begin)s;
  for (int k = 0; k < steps; ++k) {
    %(loads)s
    %(folds)s
  }
  %(stores)s
}
"""

SCORES = """
/* Products of `rows` rows of an array and the columns of a panel. */
static inline void scores_of_%(name)s(__global const real *a, int rows, __local const real *b, __local real *c,
                                       int item) {
  const int height = rows < %(height)d ? 1 : %(height)d;
  EACH(n, (rows + height - 1) / height * TILES) {
    const int row = min(n / TILES * height, rows - height), column = n %% TILES * SPAN;
    if (height == 1) row_of_%(name)s(a + row * (long)%(step)d, b + column, %(steps)d, ROW(c, row) + column);
    else rows_of_%(name)s(a + row * (long)%(step)d, b + column, %(steps)d, ROW(c, row) + column);
  }
}
"""

SUMS = """
/* To each column of a panel `steps` rows of an array are added, each times a row of weights. */
static inline void add_%(name)s(__global const real *a, __local const real *weights, int steps, __local real *c,
                                int item) {
  EACH(n, %(tiles)d * TILES) {
    const int row = n / TILES * %(height)d, column = n %% TILES * SPAN;
    features_of_%(name)s(a + row * (long)%(step)d, weights + column, steps, ROW(c, row) + column);
  }
  %(rest)s
}
"""
REST = """EACH(n, TILES)
    rest_of_%(name)s(a + %(row)dL * %(step)d, weights + n * SPAN, steps, ROW(c, %(row)d) + n * SPAN);"""

AHEAD = """
KERNEL void attend(PARAMETERS) {
  NUMBERS
  const int item = get_local_id(0);
  __local real turned[FEATURES * WIDTH], scores[BLOCK * WIDTH], mixture[VALUE_FEATURES * WIDTH];
  __local real highest[WIDTH], total[WIDTH], factors[WIDTH];
  PANEL(queries)
  PLACES
  turn(query + first * QUERY_ROW, QUERY_ROW, QUERY_COLUMN, count, FEATURES, turned, item);
  fill(mixture, VALUE_FEATURES * WIDTH, 0, item);
  fill(highest, WIDTH, -INFINITY, item);
  fill(total, WIDTH, 0, item);
  BARRIER
  const long stop = LAST_KEY;
  for (long from = 0; from < stop; from += BLOCK) {
    const int rows = (int)min((long)BLOCK, stop - from);
    scores_of_key(key + from * KEY_ROW, rows, turned, scores, item);
    MASK(mask + first * mask_row + from * mask_column, mask_row, count, mask_column, rows)
    BARRIER
    EACH(n, rows * VECTORS) {
      const int i = n / VECTORS, v = n % VECTORS;
      vector x = VLOAD(scores + n * LANES) * SCALE;
      MASKED(x)
      SEE(x, >=, from + i - first - offset, from + rows - 1 > first + offset);
      VSTORE(x, scores + n * LANES);
    }
    BARRIER
    EACH(v, VECTORS) {
      const vector before = VLOAD(highest + v * LANES);
      vector most = before;
      for (int i = 0; i < rows; ++i) {
        const vector x = VLOAD(ROW(scores, i) + v * LANES);
        most = x > most ? x : most;
      }
      const vector base = most == HIDDEN ? (vector)0 : most;
      VSTORE(most, highest + v * LANES);
      VSTORE(exp(before - base), factors + v * LANES);
    }
    BARRIER
    EACH(n, rows * VECTORS) {
      const vector most = VLOAD(highest + n % VECTORS * LANES);
      const vector base = most == HIDDEN ? (vector)0 : most;
      VSTORE(exp(VLOAD(scores + n * LANES) - base), scores + n * LANES);
    }
    EACH(n, VALUE_FEATURES * VECTORS)
      VSTORE(VLOAD(mixture + n * LANES) * VLOAD(factors + n % VECTORS * LANES), mixture + n * LANES);
    BARRIER
    EACH(v, VECTORS) {
      vector sum = 0;
      for (int i = 0; i < rows; ++i) sum += VLOAD(ROW(scores, i) + v * LANES);
      VSTORE(fma(VLOAD(total + v * LANES), VLOAD(factors + v * LANES), sum), total + v * LANES);
    }
    add_value(value + from * VALUE_ROW, scores, rows, mixture, item);
    BARRIER
  }
  EACH(n, VALUE_FEATURES * count) {
    const int lane = n / VALUE_FEATURES, feature = n % VALUE_FEATURES;
    result[(first + lane) * result_row + feature * result_column] = mixture[feature * WIDTH + lane] / WHOLE(lane);
  }
  EACH(lane, count)
    sums[(first + lane) * sums_row] = (HIDES && highest[lane] == -INFINITY ? 0 : highest[lane]) + log(WHOLE(lane));
}
"""

BACK = """
KERNEL void of_keys(PARAMETERS) {
  NUMBERS
  const int item = get_local_id(0);
  __local real turned_key[FEATURES * WIDTH], turned_value[VALUE_FEATURES * WIDTH];
  __local real key_sums[FEATURES * WIDTH], value_sums[VALUE_FEATURES * WIDTH];
  __local real weights[BLOCK * WIDTH], scores[BLOCK * WIDTH];
  PANEL(keys)
  PLACES
  turn(key + first * KEY_ROW, KEY_ROW, KEY_COLUMN, count, FEATURES, turned_key, item);
  turn(value + first * VALUE_ROW, VALUE_ROW, VALUE_COLUMN, count, VALUE_FEATURES, turned_value, item);
  fill(key_sums, FEATURES * WIDTH, 0, item);
  fill(value_sums, VALUE_FEATURES * WIDTH, 0, item);
  BARRIER
  for (long member = 0; member < group; ++member) {
    __global const real *some = query + member * query_group, *cotangents = cotangent + member * cotangent_group;
    for (long from = FIRST_QUERY; from < queries; from += BLOCK) {
      const int rows = (int)min((long)BLOCK, queries - from);
      scores_of_query(some + from * QUERY_ROW, rows, turned_key, weights, item);
      scores_of_cotangent(cotangents + from * COTANGENT_ROW, rows, turned_value, scores, item);
      MASK(mask + member * mask_group + from * mask_row + first * mask_column, mask_column, count, mask_row, rows)
      BARRIER
      EACH(n, rows * VECTORS) {
        const int i = n / VECTORS, v = n % VECTORS;
        const real base = sums[member * sums_group + (from + i) * sums_row];
        const real less = shift[member * shift_group + (from + i) * shift_row];
        vector x = VLOAD(weights + n * LANES) * SCALE;
        MASKED(x)
        SEE(x, <=, from + i + offset - first, first + count - 1 > from + offset);
        x = exp(x - base);
        VSTORE(x, weights + n * LANES);
        VSTORE(x * (VLOAD(scores + n * LANES) - less), scores + n * LANES);
      }
      BARRIER
      add_cotangent(cotangents + from * COTANGENT_ROW, weights, rows, value_sums, item);
      add_query(some + from * QUERY_ROW, scores, rows, key_sums, item);
      BARRIER
    }
  }
  turn_back(key_sums, SCALE, of_key + first * of_key_row, of_key_row, of_key_column, count, FEATURES, item);
  turn_back(value_sums, 1, of_value + first * of_value_row, of_value_row, of_value_column, count, VALUE_FEATURES, item);
}

KERNEL void of_queries(PARAMETERS) {
  NUMBERS
  const int item = get_local_id(0);
  __local real turned_query[FEATURES * WIDTH], turned_cotangent[VALUE_FEATURES * WIDTH];
  __local real query_sums[FEATURES * WIDTH], bases[WIDTH], lesses[WIDTH];
  __local real weights[BLOCK * WIDTH], scores[BLOCK * WIDTH];
  PANEL(queries)
  const long member = rest % group;
  rest /= group;
  PLACES
  query += member * query_group + first * QUERY_ROW;
  cotangent += member * cotangent_group + first * COTANGENT_ROW;
  turn(query, QUERY_ROW, QUERY_COLUMN, count, FEATURES, turned_query, item);
  turn(cotangent, COTANGENT_ROW, COTANGENT_COLUMN, count, VALUE_FEATURES, turned_cotangent, item);
  fill(query_sums, FEATURES * WIDTH, 0, item);
  EACH(lane, WIDTH) {
    const long place = first + min(lane, count - 1);
    bases[lane] = sums[member * sums_group + place * sums_row];
    lesses[lane] = shift[member * shift_group + place * shift_row];
  }
  BARRIER
  const long stop = LAST_KEY;
  for (long from = 0; from < stop; from += BLOCK) {
    const int rows = (int)min((long)BLOCK, stop - from);
    scores_of_key(key + from * KEY_ROW, rows, turned_query, weights, item);
    scores_of_value(value + from * VALUE_ROW, rows, turned_cotangent, scores, item);
    MASK(mask + member * mask_group + first * mask_row + from * mask_column, mask_row, count, mask_column, rows)
    BARRIER
    EACH(n, rows * VECTORS) {
      const int i = n / VECTORS, v = n % VECTORS;
      vector x = VLOAD(weights + n * LANES) * SCALE;
      MASKED(x)
      SEE(x, >=, from + i - first - offset, from + rows - 1 > first + offset);
      x = exp(x - VLOAD(bases + v * LANES));
      VSTORE(x * (VLOAD(scores + n * LANES) - VLOAD(lesses + v * LANES)), scores + n * LANES);
    }
    BARRIER
    add_key(key + from * KEY_ROW, scores, rows, query_sums, item);
    BARRIER
  }
  of_query += member * of_query_group + first * of_query_row;
  turn_back(query_sums, SCALE, of_query, of_query_row, of_query_column, count, FEATURES, item);
}
"""
