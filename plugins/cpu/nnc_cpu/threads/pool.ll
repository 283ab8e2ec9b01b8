; A pool of threads that share the tasks of one launch.
;
; The caller writes a job, opens the gate, wakes helpers that sleep, and takes tasks like them.  Tasks are taken from one
; counter: each time a part of those that are left, so that the last pieces are small, and all threads end together.
; A helper is inside of a job from when it has passed the gate until it has left; when no
; task is left the caller closes the gate and waits for those that are inside, not for those that still sleep.
;
; The gate is one word: number of the job << 32 | helpers wanted << 16 | open << 15 | helpers inside.

%Job = type { ptr, ptr, ptr, i64, i64, i64 }       ; function, arguments, numbers, tasks, least of a piece, parts
; parts that different threads write lie 128 bytes apart
%Pool = type { %Job, [80 x i8],
               i64, [120 x i8],                    ; 2: tasks that have been taken
               i64, [120 x i8],                    ; 4: the gate
               i32, i32, [120 x i8],               ; 6: a caller has the pool; 7: it sleeps until helpers have left
               i64, ptr, ptr, ptr, ptr, ptr,       ; 9: spins; then lock, unlock, wait, wake; 14: the helpers
               [80 x i8], [128 x i8], [128 x i8] } ; 16: mutex; 17: condition, both for that caller
%Helper = type { ptr, i64, i32, [108 x i8], [128 x i8], [128 x i8] } ; pool, index, asleep, -, mutex, condition

DECLARATION

define internal void @pause() #0 {
  PAUSE
  ret void
}

; So many pauses: to measure what one takes.
define void @nnc_pauses(i64 %count) #0 {
entry:
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @pause()
  %next = add i64 %n, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}

define internal void @lock(ptr %pool, ptr %mutex) #0 {
  %place = getelementptr %Pool, ptr %pool, i64 0, i32 10
  %function = load ptr, ptr %place
  call i32 %function(ptr %mutex)
  ret void
}

define internal void @unlock(ptr %pool, ptr %mutex) #0 {
  %place = getelementptr %Pool, ptr %pool, i64 0, i32 11
  %function = load ptr, ptr %place
  call i32 %function(ptr %mutex)
  ret void
}

; Sleep until woken.  POSIX reads two arguments, Windows four.
define internal void @wait(ptr %pool, ptr %condition, ptr %mutex) #0 {
  %place = getelementptr %Pool, ptr %pool, i64 0, i32 12
  %function = load ptr, ptr %place
  call i32 %function(ptr %condition, ptr %mutex, i32 -1, i32 0)
  ret void
}

define internal void @wake(ptr %pool, ptr %condition) #0 {
  %place = getelementptr %Pool, ptr %pool, i64 0, i32 13
  %function = load ptr, ptr %place
  call i32 %function(ptr %condition)
  ret void
}

; Take tasks until there are none left.
define internal void @take_tasks(ptr %pool) #0 {
entry:
  %function.at = getelementptr %Pool, ptr %pool, i64 0, i32 0, i32 0
  %function = load ptr, ptr %function.at
  %arguments.at = getelementptr %Pool, ptr %pool, i64 0, i32 0, i32 1
  %arguments = load ptr, ptr %arguments.at
  %numbers.at = getelementptr %Pool, ptr %pool, i64 0, i32 0, i32 2
  %numbers = load ptr, ptr %numbers.at
  %tasks.at = getelementptr %Pool, ptr %pool, i64 0, i32 0, i32 3
  %tasks = load i64, ptr %tasks.at
  %least.at = getelementptr %Pool, ptr %pool, i64 0, i32 0, i32 4
  %least = load i64, ptr %least.at
  %parts.at = getelementptr %Pool, ptr %pool, i64 0, i32 0, i32 5
  %parts = load i64, ptr %parts.at
  %taken = getelementptr %Pool, ptr %pool, i64 0, i32 2
  br label %loop
loop:
  %begin = load atomic i64, ptr %taken monotonic, align 8
  %left = sub i64 %tasks, %begin
  %any = icmp sgt i64 %left, 0
  br i1 %any, label %take, label %done
take:
  %part = sdiv i64 %left, %parts
  %enough = icmp sgt i64 %part, %least
  %piece = select i1 %enough, i64 %part, i64 %least
  %whole = add i64 %begin, %piece
  %last = icmp slt i64 %tasks, %whole
  %end = select i1 %last, i64 %tasks, i64 %whole
  %exchange = cmpxchg ptr %taken, i64 %begin, i64 %end monotonic monotonic
  %mine = extractvalue { i64, i1 } %exchange, 1
  br i1 %mine, label %run, label %loop
run:
  call void %function(ptr %arguments, ptr %numbers, i64 %begin, i64 %end)
  br label %loop
done:
  ret void
}

; Tell whether there is an open job, other than number `seen`, that wants the helper with this index.
define internal i1 @wanted(i64 %gate, i64 %seen, i64 %index) #0 {
  %open.bit = and i64 %gate, 32768
  %open = icmp ne i64 %open.bit, 0
  %job = lshr i64 %gate, 32
  %new = icmp ne i64 %job, %seen
  %shifted = lshr i64 %gate, 16
  %helpers = and i64 %shifted, 65535
  %mine = icmp ult i64 %index, %helpers
  %a = and i1 %open, %new
  %b = and i1 %a, %mine
  ret i1 %b
}

; What a helper's thread does until the process ends.
define i64 @nnc_help(ptr %helper) #0 {
entry:
  %pool = load ptr, ptr %helper
  %index.at = getelementptr %Helper, ptr %helper, i64 0, i32 1
  %index = load i64, ptr %index.at
  %asleep = getelementptr %Helper, ptr %helper, i64 0, i32 2
  %mutex = getelementptr %Helper, ptr %helper, i64 0, i32 4
  %condition = getelementptr %Helper, ptr %helper, i64 0, i32 5
  %gate.at = getelementptr %Pool, ptr %pool, i64 0, i32 4
  %waiting = getelementptr %Pool, ptr %pool, i64 0, i32 7
  %spins.at = getelementptr %Pool, ptr %pool, i64 0, i32 9
  %callers.mutex = getelementptr %Pool, ptr %pool, i64 0, i32 16
  %callers.condition = getelementptr %Pool, ptr %pool, i64 0, i32 17
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ %seen, %rise ], [ %job, %work ], [ %job, %leave ], [ %job, %call ]
  %spins = load i64, ptr %spins.at
  br label %spin
spin:
  %n = phi i64 [ 0, %idle ], [ %n.next, %again ], [ %n, %enter ]
  %gate = load atomic i64, ptr %gate.at acquire, align 8
  %found = call i1 @wanted(i64 %gate, i64 %seen, i64 %index)
  br i1 %found, label %enter, label %again
again:
  call void @pause()
  %n.next = add i64 %n, 1
  %more = icmp slt i64 %n.next, %spins
  br i1 %more, label %spin, label %sleep
sleep:
  call void @lock(ptr %pool, ptr %mutex)
  store atomic i32 1, ptr %asleep seq_cst, align 4
  br label %look
look:
  %gate.now = load atomic i64, ptr %gate.at seq_cst, align 8
  %called = call i1 @wanted(i64 %gate.now, i64 %seen, i64 %index)
  br i1 %called, label %rise, label %doze
doze:
  call void @wait(ptr %pool, ptr %condition, ptr %mutex)
  br label %look
rise:
  store atomic i32 0, ptr %asleep seq_cst, align 4
  call void @unlock(ptr %pool, ptr %mutex)
  br label %idle
enter:
  %inside = add i64 %gate, 1
  %exchange = cmpxchg ptr %gate.at, i64 %gate, i64 %inside seq_cst acquire
  %entered = extractvalue { i64, i1 } %exchange, 1
  br i1 %entered, label %work, label %spin
work:
  %job = lshr i64 %gate, 32
  call void @take_tasks(ptr %pool)
  %before = atomicrmw sub ptr %gate.at, i64 1 seq_cst
  %others = and i64 %before, 65535
  %alone = icmp eq i64 %others, 1 ; closed, and nobody else inside
  br i1 %alone, label %leave, label %idle
leave:
  %sleeps = load atomic i32, ptr %waiting seq_cst, align 4
  %sleeping = icmp ne i32 %sleeps, 0
  br i1 %sleeping, label %call, label %idle
call:
  call void @lock(ptr %pool, ptr %callers.mutex)
  call void @wake(ptr %pool, ptr %callers.condition)
  call void @unlock(ptr %pool, ptr %callers.mutex)
  br label %idle
}

; Wake those of the first helpers that sleep.
define internal void @wake_helpers(ptr %pool, i64 %count) #0 {
entry:
  %helpers.at = getelementptr %Pool, ptr %pool, i64 0, i32 14
  %helpers = load ptr, ptr %helpers.at
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %next, %advance ]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %look, label %done
look:
  %asleep.at = getelementptr %Helper, ptr %helpers, i64 %n, i32 2
  %asleep = load atomic i32, ptr %asleep.at seq_cst, align 4
  %sleeps = icmp ne i32 %asleep, 0
  br i1 %sleeps, label %call, label %advance
call:
  %mutex = getelementptr %Helper, ptr %helpers, i64 %n, i32 4
  %condition = getelementptr %Helper, ptr %helpers, i64 %n, i32 5
  call void @lock(ptr %pool, ptr %mutex)
  call void @wake(ptr %pool, ptr %condition)
  call void @unlock(ptr %pool, ptr %mutex)
  br label %advance
advance:
  %next = add i64 %n, 1
  br label %loop
done:
  ret void
}

; Wait until all helpers have left a job that is closed.
define internal void @wait_for_helpers(ptr %pool) #0 {
entry:
  %gate.at = getelementptr %Pool, ptr %pool, i64 0, i32 4
  %waiting = getelementptr %Pool, ptr %pool, i64 0, i32 7
  %spins.at = getelementptr %Pool, ptr %pool, i64 0, i32 9
  %spins = load i64, ptr %spins.at
  %mutex = getelementptr %Pool, ptr %pool, i64 0, i32 16
  %condition = getelementptr %Pool, ptr %pool, i64 0, i32 17
  br label %spin
spin:
  %n = phi i64 [ 0, %entry ], [ %next, %again ]
  %gate = load atomic i64, ptr %gate.at acquire, align 8
  %inside = and i64 %gate, 65535
  %alone = icmp eq i64 %inside, 0
  br i1 %alone, label %done, label %again
again:
  call void @pause()
  %next = add i64 %n, 1
  %more = icmp slt i64 %next, %spins
  br i1 %more, label %spin, label %sleep
sleep:
  call void @lock(ptr %pool, ptr %mutex)
  store atomic i32 1, ptr %waiting seq_cst, align 4
  br label %look
look:
  %gate.now = load atomic i64, ptr %gate.at seq_cst, align 8
  %inside.now = and i64 %gate.now, 65535
  %left = icmp eq i64 %inside.now, 0
  br i1 %left, label %rise, label %doze
doze:
  call void @wait(ptr %pool, ptr %condition, ptr %mutex)
  br label %look
rise:
  store atomic i32 0, ptr %waiting seq_cst, align 4
  call void @unlock(ptr %pool, ptr %mutex)
  br label %done
done:
  ret void
}

; Run all tasks of a function, with so many helpers if nobody else has the pool (null: without any).
define void @nnc_run(ptr %pool, ptr %function, ptr %arguments, ptr %numbers, i64 %tasks, i64 %helpers) #0 {
entry:
  %alone = icmp slt i64 %helpers, 1
  %none = icmp eq ptr %pool, null
  %single = or i1 %alone, %none
  br i1 %single, label %serial, label %ask
ask:
  %owner = getelementptr %Pool, ptr %pool, i64 0, i32 6
  %exchange = cmpxchg ptr %owner, i32 0, i32 1 acquire monotonic
  %owned = extractvalue { i32, i1 } %exchange, 1
  br i1 %owned, label %parallel, label %serial
serial:
  call void %function(ptr %arguments, ptr %numbers, i64 0, i64 %tasks)
  ret void
parallel:
  %function.at = getelementptr %Pool, ptr %pool, i64 0, i32 0, i32 0
  store ptr %function, ptr %function.at
  %arguments.at = getelementptr %Pool, ptr %pool, i64 0, i32 0, i32 1
  store ptr %arguments, ptr %arguments.at
  %numbers.at = getelementptr %Pool, ptr %pool, i64 0, i32 0, i32 2
  store ptr %numbers, ptr %numbers.at
  %tasks.at = getelementptr %Pool, ptr %pool, i64 0, i32 0, i32 3
  store i64 %tasks, ptr %tasks.at
  %threads = add i64 %helpers, 1
  %parts = mul i64 %threads, PARTS
  %parts.at = getelementptr %Pool, ptr %pool, i64 0, i32 0, i32 5
  store i64 %parts, ptr %parts.at
  %pieces = mul i64 %threads, PIECES
  %part = sdiv i64 %tasks, %pieces
  %some = icmp sgt i64 %part, 1
  %least = select i1 %some, i64 %part, i64 1
  %least.at = getelementptr %Pool, ptr %pool, i64 0, i32 0, i32 4
  store i64 %least, ptr %least.at
  %taken = getelementptr %Pool, ptr %pool, i64 0, i32 2
  store atomic i64 0, ptr %taken monotonic, align 8
  %gate.at = getelementptr %Pool, ptr %pool, i64 0, i32 4
  %gate = load atomic i64, ptr %gate.at monotonic, align 8
  %last.job = lshr i64 %gate, 32
  %job = add i64 %last.job, 1
  %number = shl i64 %job, 32
  %wanted = shl i64 %helpers, 16
  %named = or i64 %number, %wanted
  %open = or i64 %named, 32768
  %before = atomicrmw xchg ptr %gate.at, i64 %open seq_cst
  call void @wake_helpers(ptr %pool, i64 %helpers)
  call void @take_tasks(ptr %pool)
  %closed = atomicrmw and ptr %gate.at, i64 -32769 seq_cst
  %inside = and i64 %closed, 32767
  %busy = icmp ne i64 %inside, 0
  br i1 %busy, label %wait, label %done
wait:
  call void @wait_for_helpers(ptr %pool)
  br label %done
done:
  store atomic i32 0, ptr %owner release, align 4
  ret void
}
