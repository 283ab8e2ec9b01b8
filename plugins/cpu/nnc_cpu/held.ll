; Holds a BLAS to one thread for as long as somebody works between whose threads it would be in the way.

; lock, who holds it, threads before, functions that say and take the number of threads
%Held = type { i64, i64, i64, ptr, ptr }

define internal ptr @locked(ptr %held) #0 {
entry:
  br label %wait
wait:
  %taken = cmpxchg ptr %held, i64 0, i64 1 acquire monotonic
  %mine = extractvalue { i64, i1 } %taken, 1
  br i1 %mine, label %end, label %wait
end:
  %within.at = getelementptr %Held, ptr %held, i64 0, i32 1
  ret ptr %within.at
}

define void @nnc_hold(ptr %held) #0 {
entry:
  %within.at = call ptr @locked(ptr %held)
  %within = load i64, ptr %within.at
  %more = add i64 %within, 1
  store i64 %more, ptr %within.at
  %first = icmp eq i64 %within, 0
  br i1 %first, label %hold, label %end
hold:
  %before.at = getelementptr %Held, ptr %held, i64 0, i32 2
  %get.at = getelementptr %Held, ptr %held, i64 0, i32 3
  %get = load ptr, ptr %get.at
  %before = call i32 %get()
  %wide = sext i32 %before to i64
  store i64 %wide, ptr %before.at
  %set.at = getelementptr %Held, ptr %held, i64 0, i32 4
  %set = load ptr, ptr %set.at
  call void %set(i32 1)
  br label %end
end:
  store atomic i64 0, ptr %held release, align 8
  ret void
}

define void @nnc_release(ptr %held) #0 {
entry:
  %within.at = call ptr @locked(ptr %held)
  %within = load i64, ptr %within.at
  %less = sub i64 %within, 1
  store i64 %less, ptr %within.at
  %last = icmp eq i64 %less, 0
  br i1 %last, label %release, label %end
release:
  %before.at = getelementptr %Held, ptr %held, i64 0, i32 2
  %before = load i64, ptr %before.at
  %narrow = trunc i64 %before to i32
  %set.at = getelementptr %Held, ptr %held, i64 0, i32 4
  %set = load ptr, ptr %set.at
  call void %set(i32 %narrow)
  br label %end
end:
  store atomic i64 0, ptr %held release, align 8
  ret void
}
