; Runs the records of a program: a list of words, each instruction an opcode and what it needs.
;
; `nnc_program` returns 0 at the end, or why Python is to go on: 1 for a call that is Python's, 2 for a look at signals,
; 3 for a branch that there is not, 4 for a record of tapes, 5 for a call that has noted a mistake.  When it is called
; again, the program continues at the word `next`.

declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; words, next, slots, rounds, arguments, pool, helpers, position, watched, fuel, branch, run
%State = type { ptr, i64, ptr, ptr, ptr, ptr, i64, i64, i64, i64, i64, ptr }
%Slot = type { i64, i64, i64 } ; address, number of the slot that has the whole buffer, bytes
%Round = type { i64, i64 }     ; of a repetition: its number, and how many there are

define internal i64 @word(ptr %at, i64 %n) #0 {
  %place = getelementptr i64, ptr %at, i64 %n
  %found = load i64, ptr %place
  ret i64 %found
}

define internal ptr @slot(ptr %state, ptr %at, i64 %n) #0 {
  %number = call i64 @word(ptr %at, i64 %n)
  %slots.at = getelementptr %State, ptr %state, i64 0, i32 2
  %slots = load ptr, ptr %slots.at
  %found = getelementptr %Slot, ptr %slots, i64 %number
  ret ptr %found
}

define internal i64 @address(ptr %state, ptr %at, i64 %n) #0 {
  %slot = call ptr @slot(ptr %state, ptr %at, i64 %n)
  %found = load i64, ptr %slot
  ret i64 %found
}

define internal void @copy_slot(ptr %target, ptr %source) #0 {
  %content = load %Slot, ptr %source
  store %Slot %content, ptr %target
  ret void
}

define internal ptr @round(ptr %state, ptr %at, i64 %n) #0 {
  %number = call i64 @word(ptr %at, i64 %n)
  %rounds.at = getelementptr %State, ptr %state, i64 0, i32 3
  %rounds = load ptr, ptr %rounds.at
  %found = getelementptr %Round, ptr %rounds, i64 %number
  ret ptr %found
}

; Take some of the nanoseconds that are left until Python is to look at signals; tell whether that is now.
define internal i1 @tired(ptr %state, i64 %spent) #0 {
  %fuel.at = getelementptr %State, ptr %state, i64 0, i32 9
  %fuel = load i64, ptr %fuel.at
  %left = sub i64 %fuel, %spent
  store i64 %left, ptr %fuel.at
  %out = icmp slt i64 %left, 1
  ret i1 %out
}

define internal ptr @last(ptr %arguments, i64 %count) #0 {
  %n = sub i64 %count, 1
  %place = getelementptr i64, ptr %arguments, i64 %n
  %found = load ptr, ptr %place
  ret ptr %found
}

; position function numbers tasks threads nanoseconds notes count slots...; whether a mistake is noted in the last slot
define internal i1 @call(ptr %state, ptr %at) #0 {
entry:
  %position = call i64 @word(ptr %at, i64 1)
  %position.at = getelementptr %State, ptr %state, i64 0, i32 7
  store i64 %position, ptr %position.at
  %arguments.at = getelementptr %State, ptr %state, i64 0, i32 4
  %arguments = load ptr, ptr %arguments.at
  %nanoseconds = call i64 @word(ptr %at, i64 6)
  %tired = call i1 @tired(ptr %state, i64 %nanoseconds)
  %notes = call i64 @word(ptr %at, i64 7)
  %takes.notes = icmp ne i64 %notes, 0
  %count = call i64 @word(ptr %at, i64 8)
  br label %gather
gather:
  %n = phi i64 [ 0, %entry ], [ %next, %one ]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %one, label %gathered
one:
  %place = add i64 %n, 9
  %address = call i64 @address(ptr %state, ptr %at, i64 %place)
  %argument = getelementptr i64, ptr %arguments, i64 %n
  store i64 %address, ptr %argument
  %next = add i64 %n, 1
  br label %gather
gathered:
  br i1 %takes.notes, label %clear, label %ready
clear:
  %note = call ptr @last(ptr %arguments, i64 %count)
  call void @llvm.memset.p0.i64(ptr %note, i8 0, i64 NOTE_BYTES, i1 false)
  br label %ready
ready:
  %function.word = call i64 @word(ptr %at, i64 2)
  %function = inttoptr i64 %function.word to ptr
  %numbers.word = call i64 @word(ptr %at, i64 3)
  %numbers = inttoptr i64 %numbers.word to ptr
  %tasks = call i64 @word(ptr %at, i64 4)
  %most = call i64 @word(ptr %at, i64 5)
  %single = icmp slt i64 %most, 2
  br i1 %single, label %serial, label %shared
serial:
  call void %function(ptr %arguments, ptr %numbers, i64 0, i64 %tasks)
  br label %done
shared:
  %others = sub i64 %most, 1
  %helpers.at = getelementptr %State, ptr %state, i64 0, i32 6
  %there = load i64, ptr %helpers.at
  %helpers = call i64 @llvm.smin.i64(i64 %others, i64 %there)
  %pool.at = getelementptr %State, ptr %state, i64 0, i32 5
  %pool = load ptr, ptr %pool.at
  %run.at = getelementptr %State, ptr %state, i64 0, i32 11
  %run = load ptr, ptr %run.at
  call void %run(ptr %pool, ptr %function, ptr %arguments, ptr %numbers, i64 %tasks, i64 %helpers)
  br label %done
done:
  br i1 %takes.notes, label %look, label %well
look:
  %noted.at = call ptr @last(ptr %arguments, i64 %count)
  %noted = load i64, ptr %noted.at
  %mistaken = icmp ne i64 %noted, 0
  ret i1 %mistaken
well:
  ret i1 false
}

; The index of a branch: `kind` is the width in bits, negative if it is signed.
define internal i64 @index(i64 %address, i64 %kind) #0 {
  %place = inttoptr i64 %address to ptr
  switch i64 %kind, label %wide [ i64 8, label %u8  i64 16, label %u16  i64 32, label %u32
                                  i64 -8, label %s8  i64 -16, label %s16  i64 -32, label %s32 ]
u8:
  %u8.value = load i8, ptr %place
  %u8.wide = zext i8 %u8.value to i64
  ret i64 %u8.wide
u16:
  %u16.value = load i16, ptr %place
  %u16.wide = zext i16 %u16.value to i64
  ret i64 %u16.wide
u32:
  %u32.value = load i32, ptr %place
  %u32.wide = zext i32 %u32.value to i64
  ret i64 %u32.wide
s8:
  %s8.value = load i8, ptr %place
  %s8.wide = sext i8 %s8.value to i64
  ret i64 %s8.wide
s16:
  %s16.value = load i16, ptr %place
  %s16.wide = sext i16 %s16.value to i64
  ret i64 %s16.wide
s32:
  %s32.value = load i32, ptr %place
  %s32.wide = sext i32 %s32.value to i64
  ret i64 %s32.wide
wide:
  %value = load i64, ptr %place
  ret i64 %value
}

; count slots...: the first gets what the last has, each other what the one before it has.
define internal void @rotate(ptr %state, ptr %at) #0 {
entry:
  %count = call i64 @word(ptr %at, i64 1)
  %last.place = add i64 %count, 1
  %last = call ptr @slot(ptr %state, ptr %at, i64 %last.place)
  %kept = load %Slot, ptr %last
  br label %loop
loop:
  %n = phi i64 [ %last.place, %entry ], [ %before, %move ]
  %before = sub i64 %n, 1
  %target = call ptr @slot(ptr %state, ptr %at, i64 %n)
  %first = icmp slt i64 %before, 2
  br i1 %first, label %done, label %move
move:
  %source = call ptr @slot(ptr %state, ptr %at, i64 %before)
  call void @copy_slot(ptr %target, ptr %source)
  br label %loop
done:
  store %Slot %kept, ptr %target
  ret void
}

; slot source offset step round bytes
define internal void @window(ptr %state, ptr %at) #0 {
  %target = call ptr @slot(ptr %state, ptr %at, i64 1)
  %source = call ptr @slot(ptr %state, ptr %at, i64 2)
  %offset = call i64 @word(ptr %at, i64 3)
  %step = call i64 @word(ptr %at, i64 4)
  %round = call ptr @round(ptr %state, ptr %at, i64 5)
  %number = load i64, ptr %round
  %moved = mul i64 %number, %step
  %more = add i64 %offset, %moved
  %begin = load i64, ptr %source
  %address = add i64 %begin, %more
  %root.at = getelementptr %Slot, ptr %source, i64 0, i32 1
  %root = load i64, ptr %root.at
  %bytes = call i64 @word(ptr %at, i64 6)
  store i64 %address, ptr %target
  %target.root = getelementptr %Slot, ptr %target, i64 0, i32 1
  store i64 %root, ptr %target.root
  %target.bytes = getelementptr %Slot, ptr %target, i64 0, i32 2
  store i64 %bytes, ptr %target.bytes
  ret void
}

; slot tape round reverse; a tape is a count and where its places lie
define internal void @read(ptr %state, ptr %at) #0 {
  %target = call ptr @slot(ptr %state, ptr %at, i64 1)
  %tape.word = call i64 @address(ptr %state, ptr %at, i64 2)
  %tape = inttoptr i64 %tape.word to ptr
  %count = load i64, ptr %tape
  %places.at = getelementptr i64, ptr %tape, i64 1
  %places = load ptr, ptr %places.at
  %round = call ptr @round(ptr %state, ptr %at, i64 3)
  %number = load i64, ptr %round
  %reverse.word = call i64 @word(ptr %at, i64 4)
  %reverse = icmp ne i64 %reverse.word, 0
  %last = sub i64 %count, 1
  %back = sub i64 %last, %number
  %row = select i1 %reverse, i64 %back, i64 %number
  %place = getelementptr %Slot, ptr %places, i64 %row
  call void @copy_slot(ptr %target, ptr %place)
  ret void
}

define i64 @nnc_program(ptr %state) #0 {
entry:
  %next.at = getelementptr %State, ptr %state, i64 0, i32 1
  %position.at = getelementptr %State, ptr %state, i64 0, i32 7
  %watched.at = getelementptr %State, ptr %state, i64 0, i32 8
  %branch.at = getelementptr %State, ptr %state, i64 0, i32 10
  %words = load ptr, ptr %state
  %first = load i64, ptr %next.at
  br label %instruction
instruction:
  %here = phi i64 [ %first, %entry ], [ %after.call, %native ], [ %target, %jump ], [ %choice, %choose ],
                  [ %after.switch, %chosen ], [ %after.rotate, %rotation ], [ %after.rebind, %rebind ],
                  [ %after.window, %view ], [ %begun, %repeat.rounds ], [ %top, %again ], [ %after.read, %read ]
  %at = getelementptr i64, ptr %words, i64 %here
  %opcode = load i64, ptr %at
  switch i64 %opcode, label %end [ i64 1, label %call  i64 2, label %python  i64 3, label %jump.word
    i64 4, label %jump.if  i64 5, label %switch  i64 6, label %rotation  i64 7, label %rebind  i64 8, label %view
    i64 9, label %repeat  i64 10, label %again.word  i64 11, label %read  i64 12, label %repeat.tape
    i64 13, label %record ]
end:
  ret i64 0

; 1 and 2 position function numbers tasks threads nanoseconds notes count slots...: run here, or by Python
call:
  %watched = load i64, ptr %watched.at
  %alone = icmp ne i64 %watched, 0
  br i1 %alone, label %python, label %native
native:
  %mistaken = call i1 @call(ptr %state, ptr %at)
  %count = call i64 @word(ptr %at, i64 8)
  %operands = add i64 %here, %count
  %after.call = add i64 %operands, 9
  br i1 %mistaken, label %noted, label %instruction
noted:
  store i64 %after.call, ptr %next.at
  ret i64 5
python:
  %position = call i64 @word(ptr %at, i64 1)
  store i64 %position, ptr %position.at
  %arguments = call i64 @word(ptr %at, i64 8)
  %behind = add i64 %here, %arguments
  %after.python = add i64 %behind, 9
  store i64 %after.python, ptr %next.at
  ret i64 1

; 3 target
jump.word:
  %target = call i64 @word(ptr %at, i64 1)
  %backwards = icmp sle i64 %target, %here
  br i1 %backwards, label %jump.back, label %jump
jump.back:
  %jump.tired = call i1 @tired(ptr %state, i64 20)
  br i1 %jump.tired, label %jump.rest, label %jump
jump.rest:
  store i64 %target, ptr %next.at
  ret i64 2
jump:
  br label %instruction

; 4 slot when target
jump.if:
  %condition.word = call i64 @address(ptr %state, ptr %at, i64 1)
  %condition.at = inttoptr i64 %condition.word to ptr
  %condition = load i8, ptr %condition.at
  %true = icmp ne i8 %condition, 0
  %true.word = zext i1 %true to i64
  %when = call i64 @word(ptr %at, i64 2)
  %does = icmp eq i64 %true.word, %when
  %away = call i64 @word(ptr %at, i64 3)
  %straight = add i64 %here, 4
  %choice = select i1 %does, i64 %away, i64 %straight
  br label %choose
choose:
  br label %instruction

; 5 slot kind otherwise count targets...
switch:
  %index.at = call i64 @address(ptr %state, ptr %at, i64 1)
  %kind = call i64 @word(ptr %at, i64 2)
  %index = call i64 @index(i64 %index.at, i64 %kind)
  %targets = call i64 @word(ptr %at, i64 4)
  %known = icmp ult i64 %index, %targets
  br i1 %known, label %branch, label %otherwise
branch:
  %branch.place = add i64 %index, 5
  %branch.target = call i64 @word(ptr %at, i64 %branch.place)
  br label %chosen
otherwise:
  %other.target = call i64 @word(ptr %at, i64 3)
  %none = icmp slt i64 %other.target, 0
  br i1 %none, label %wrong, label %chosen
wrong:
  store i64 %index, ptr %branch.at
  store i64 %here, ptr %next.at
  ret i64 3
chosen:
  %after.switch = phi i64 [ %branch.target, %branch ], [ %other.target, %otherwise ]
  br label %instruction

; 6 count slots...
rotation:
  call void @rotate(ptr %state, ptr %at)
  %rotated = call i64 @word(ptr %at, i64 1)
  %rotation.end = add i64 %here, %rotated
  %after.rotate = add i64 %rotation.end, 2
  br label %instruction

; 7 slot source
rebind:
  %rebind.target = call ptr @slot(ptr %state, ptr %at, i64 1)
  %rebind.source = call ptr @slot(ptr %state, ptr %at, i64 2)
  call void @copy_slot(ptr %rebind.target, ptr %rebind.source)
  %after.rebind = add i64 %here, 3
  br label %instruction

; 8 slot source offset step round bytes
view:
  call void @window(ptr %state, ptr %at)
  %after.window = add i64 %here, 7
  br label %instruction

; 9 round count end
repeat:
  %count.word = call i64 @word(ptr %at, i64 2)
  br label %repeat.rounds

; 12 round tape end
repeat.tape:
  %repeated.word = call i64 @address(ptr %state, ptr %at, i64 2)
  %repeated = inttoptr i64 %repeated.word to ptr
  %rows = load i64, ptr %repeated
  br label %repeat.rounds
repeat.rounds:
  %rounds = phi i64 [ %count.word, %repeat ], [ %rows, %repeat.tape ]
  %begin.round = call ptr @round(ptr %state, ptr %at, i64 1)
  store i64 0, ptr %begin.round
  %limit.at = getelementptr %Round, ptr %begin.round, i64 0, i32 1
  store i64 %rounds, ptr %limit.at
  %empty = icmp slt i64 %rounds, 1
  %skipped = call i64 @word(ptr %at, i64 3)
  %body = add i64 %here, 4
  %begun = select i1 %empty, i64 %skipped, i64 %body
  br label %instruction

; 10 round top
again.word:
  %round = call ptr @round(ptr %state, ptr %at, i64 1)
  %done = load i64, ptr %round
  %number = add i64 %done, 1
  store i64 %number, ptr %round
  %all.at = getelementptr %Round, ptr %round, i64 0, i32 1
  %all = load i64, ptr %all.at
  %more = icmp slt i64 %number, %all
  %body.top = call i64 @word(ptr %at, i64 2)
  %below = add i64 %here, 3
  %top = select i1 %more, i64 %body.top, i64 %below
  %again.tired = call i1 @tired(ptr %state, i64 20)
  br i1 %again.tired, label %again.rest, label %again
again.rest:
  store i64 %top, ptr %next.at
  ret i64 2
again:
  br label %instruction

; 11 slot tape round reverse
read:
  call void @read(ptr %state, ptr %at)
  %after.read = add i64 %here, 5
  br label %instruction

; 13 number
record:
  %record.number = call i64 @word(ptr %at, i64 1)
  store i64 %record.number, ptr %branch.at
  %after.record = add i64 %here, 2
  store i64 %after.record, ptr %next.at
  ret i64 4
}
