// Package stuck shows what hangs in the guest's kernel, for calls that do not end, such as mount(2). A test that is out
// of patience, and init before it ends a program, print the report: the cause is gone once the program has ended.
package stuck
