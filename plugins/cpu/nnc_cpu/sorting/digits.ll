; Sorts words by one digit, stably: equal digits keep their order.
;
; `nnc_by_digit` counts how often each digit comes, gives each the place where its words begin, and copies the words
; there one after the other.  A digit is BITS bits of a word from `shift` on; `places` has room for one number each.

define void @nnc_by_digit(ptr noalias %words, ptr noalias %sorted, i64 %count, i64 %shift, ptr noalias %places) #0 {
entry:
  br label %clear
clear:
  %c = phi i64 [ 0, %entry ], [ %c.next, %clear ]
  %c.at = getelementptr i64, ptr %places, i64 %c
  store i64 0, ptr %c.at
  %c.next = add i64 %c, 1
  %c.more = icmp ult i64 %c.next, DIGITS
  br i1 %c.more, label %clear, label %counting

counting:
  %n = phi i64 [ 0, %clear ], [ %n.next, %counting ]
  %n.at = getelementptr i64, ptr %words, i64 %n
  %n.word = load i64, ptr %n.at
  %n.moved = lshr i64 %n.word, %shift
  %n.digit = and i64 %n.moved, MASK
  %n.place = getelementptr i64, ptr %places, i64 %n.digit
  %n.seen = load i64, ptr %n.place
  %n.now = add i64 %n.seen, 1
  store i64 %n.now, ptr %n.place
  %n.next = add i64 %n, 1
  %n.more = icmp ult i64 %n.next, %count
  br i1 %n.more, label %counting, label %placing

placing:
  %d = phi i64 [ 0, %counting ], [ %d.next, %placing ]
  %begin = phi i64 [ 0, %counting ], [ %end, %placing ]
  %d.at = getelementptr i64, ptr %places, i64 %d
  %d.seen = load i64, ptr %d.at
  store i64 %begin, ptr %d.at
  %end = add i64 %begin, %d.seen
  %d.next = add i64 %d, 1
  %d.more = icmp ult i64 %d.next, DIGITS
  br i1 %d.more, label %placing, label %copying

copying:
  %i = phi i64 [ 0, %placing ], [ %i.next, %copying ]
  %i.at = getelementptr i64, ptr %words, i64 %i
  %i.word = load i64, ptr %i.at
  %i.moved = lshr i64 %i.word, %shift
  %i.digit = and i64 %i.moved, MASK
  %i.place = getelementptr i64, ptr %places, i64 %i.digit
  %target = load i64, ptr %i.place
  %target.at = getelementptr i64, ptr %sorted, i64 %target
  store i64 %i.word, ptr %target.at
  %target.next = add i64 %target, 1
  store i64 %target.next, ptr %i.place
  %i.next = add i64 %i, 1
  %i.more = icmp ult i64 %i.next, %count
  br i1 %i.more, label %copying, label %done
done:
  ret void
}

attributes #0 = { nounwind }
