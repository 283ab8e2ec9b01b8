"""Loop nests as machine code of the host: LLVM IR with explicit vectors."""
