package deadline

import "runtime"

// stackRoom is how many bytes of its goroutine's stack a call needs: the frames of an operation and of its callees.
// With the runtime's guard it makes a stack of 16 KiB.
const stackRoom = 14 << 10

// growStack grows the stack at once. A goroutine begins with 2 KiB, and growing it step by step copies the stack again
// and again: a stage took 5 % longer.
//
//go:noinline
func growStack() {
	var room [stackRoom]byte
	runtime.KeepAlive(&room)
}
