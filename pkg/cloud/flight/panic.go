package flight

import (
	"fmt"
	"runtime/debug"
)

// Panic is the panic of a call that others wait for in their own goroutines, with its stack; empty if there was none.
type Panic string

// Guard makes a call for others, and then passes its panic to then. Without that, a panic would end the process, and
// all other calls with it: a caller can recover only in its own goroutine. The panic is lost if no caller waits any
// more.
func Guard(call func(), then func(Panic)) {
	p := Panic("it has ended its goroutine (runtime.Goexit)")
	defer func() {
		if cause := recover(); cause != nil {
			p = Panic(fmt.Sprintf("%v\n%s", cause, debug.Stack()))
		}
		then(p)
	}()
	call()
	p = ""
}

// Pass passes the panic on to the caller, unless there was none.
func (p Panic) Pass() {
	if p != "" {
		panic(string(p))
	}
}
