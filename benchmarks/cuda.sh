#!/usr/bin/env bash
# Everything that a GPU is asked of nnc, in under eight minutes, on a machine where nothing can be installed: the packages
# lie on the path, and the plugin's metadata in a folder beside them.  The kit comes last, and has what time is left.
#
#   OUT=results benchmarks/cuda.sh
#
# PYTHON            the interpreter; it has numpy, ml_dtypes, pluggy, pytest, CuPy and NVRTC, and what is compared with
# NNC_CUDA_PACKAGES a folder with what it lacks
# NNC_CUDA_DEVICE   cuda:0 unless another is named; cudahost:0 is the stand-in of the tests, which is given less to do
# NNC_CUDA_PARTS    some of: gpu kit checks works
set -u
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
device=${NNC_CUDA_DEVICE:-cuda:0}
parts=${NNC_CUDA_PARTS:-gpu checks works kit}
scratch=$(mktemp -d)
mkdir -p "${OUT:-$scratch}"
out=$(cd "${OUT:-$scratch}" && pwd)
trap 'rm -rf "$scratch"' EXIT
export PYTHONPATH="$PWD:$PWD/plugins/cpu:$PWD/plugins/cuda:$scratch/site${NNC_CUDA_PACKAGES:+:$NNC_CUDA_PACKAGES}${PYTHONPATH:+:$PYTHONPATH}"
export NNC_CACHE_FOLDER=${NNC_CACHE_FOLDER:-$scratch/cache}
export NNC_CUDA_DEVICE=$device XLA_PYTHON_CLIENT_PREALLOCATE=false PYTHONUNBUFFERED=1
few=
[ "$device" = cuda:0 ] || few=--few
failed=0
all=460  # seconds

left() {  # seconds: those, or what is left of all
  local rest=$((all - SECONDS))
  echo $(($1 < rest ? $1 : rest))
}

part() {  # name, seconds, command: run it, keep what it says; pytest sums up when it is interrupted
  local name=$1 seconds=$(left "$2") begun=$SECONDS
  shift 2
  if [ "$seconds" -le 0 ]; then
    echo "== $name: there was no time left"
    failed=1
    return
  fi
  timeout -s INT -k 5 "$seconds" "$@" >"$out/$name.txt" 2>"$out/$name.errors.txt"
  local status=$?
  case $status in 124 | 137) echo "$name: stopped after $seconds s" ;; esac
  [ "$status" = 0 ] || failed=1
  echo "== $name: status $status, $((SECONDS - begun)) s"
}

has() { case " $parts " in *" $1 "*) return 0 ;; esac; return 1; }

mkdir -p "$scratch/site"
"$python" -m benchmarks._cuda_site "$scratch/site" || exit 1
"$python" - "$device" <<'END' || exit 1
import sys
import nnc_core as nnc
found = {spec.id: spec for spec in nnc.devices()}
if sys.argv[1] not in found:
    import nnc_cuda
    print(*nnc_cuda.nnc_diagnose(), sep="\n")
    sys.exit(f"there is no {sys.argv[1]} here, but {', '.join(found)}")
END
if has gpu; then
  part gpu 80 "$python" -m pytest -q -p no:cacheprovider --noconftest -o addopts= -o filterwarnings= -m gpu tests/cuda/test_gpu.py
  tail -3 "$out/gpu.txt"
fi
if has checks; then
  part checks 100 "$python" -m benchmarks._cuda_checks "$device" $few
  cat "$out/checks.txt"
fi
if has works; then
  for framework in nnc torch torch-compile jax; do
    [ -n "$few" ] && [ "$framework" != nnc ] && continue
    limit=55
    [ "$framework" = nnc ] && limit=75
    part "works-$framework" $limit "$python" -m benchmarks._cuda_works "$framework" "$device" $((limit - 15)) $few
  done
  "$python" -m benchmarks._cuda_table "$out"
fi
if has kit; then
  wanted="${few:+(hypot or softmax) and float32}"
  cd "$scratch"  # beside the project's own tests pytest would read their conftest.py, which needs Hypothesis
  part kit 450 "$python" -m pytest -q -p no:cacheprovider -o addopts=--import-mode=importlib -o filterwarnings= \
    --pyargs nnc_plugins.conformance -m "not slow" --nnc-device="$device" --nnc-one-dtype-in=4 -k "$wanted"
  tail -5 "$out/kit.txt"
fi
exit $failed
