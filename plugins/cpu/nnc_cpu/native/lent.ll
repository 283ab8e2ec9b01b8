; Puts the addresses of arrays into the slots of a program.
;
; `nnc_lend` returns how many it has put: at the first object that is no packed array of NumPy's own class it stops.  An
; array begins with the head of all objects, the second word of which is its class; what follows are the address of its
; elements, six words, and flags, the lowest of which says that it is packed.

; class, slots, places, objects, count
%Lent = type { i64, ptr, ptr, ptr, i64 }
%Array = type { i64, i64, i64, i64, ptr, ptr, ptr, ptr, i32 } ; count, class, address, axes, ..., flags
%Slot = type { i64, i64, i64 }

define i64 @nnc_lend(ptr %lent) #0 {
entry:
  %content = load %Lent, ptr %lent
  %class = extractvalue %Lent %content, 0
  %slots = extractvalue %Lent %content, 1
  %places = extractvalue %Lent %content, 2
  %objects = extractvalue %Lent %content, 3
  %count = extractvalue %Lent %content, 4
  br label %look
look:
  %n = phi i64 [ 0, %entry ], [ %next, %put ]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %one, label %end
one:
  %object.at = getelementptr ptr, ptr %objects, i64 %n
  %object = load ptr, ptr %object.at
  %class.at = getelementptr %Array, ptr %object, i64 0, i32 1
  %its.class = load i64, ptr %class.at
  %is.array = icmp eq i64 %its.class, %class
  br i1 %is.array, label %array, label %end
array:
  %flags.at = getelementptr %Array, ptr %object, i64 0, i32 8
  %flags = load i32, ptr %flags.at
  %packed = trunc i32 %flags to i1
  br i1 %packed, label %put, label %end
put:
  %address.at = getelementptr %Array, ptr %object, i64 0, i32 2
  %address = load i64, ptr %address.at
  %place.at = getelementptr i64, ptr %places, i64 %n
  %place = load i64, ptr %place.at
  %slot = getelementptr %Slot, ptr %slots, i64 %place
  store i64 %address, ptr %slot
  %next = add i64 %n, 1
  br label %look
end:
  ret i64 %n
}
