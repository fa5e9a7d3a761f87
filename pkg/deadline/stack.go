package deadline

import "runtime"

// stackRoom is what a call needs of its goroutine's stack, in bytes: the frames of an operation and of what it calls.
// With the runtime's guard it makes a stack of 16 KiB.
const stackRoom = 14 << 10

// growStack makes the room at once. A goroutine begins with 2 KiB, and growing them on the way copies the stack again
// and again: a stage took 5 % longer.
//
//go:noinline
func growStack() {
	var room [stackRoom]byte
	runtime.KeepAlive(&room)
}
