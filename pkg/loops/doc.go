// Package loops finds the loop devices that hold a file.
//
// The filesystem of the file answers the question what a loop device holds (loop(4), LOOP_GET_STATUS64 asks it for the
// file's attributes). Another user's file may be on a server that does not answer. That must not delay a caller that
// looks for its own device. But to overlook the device of an image is worse than to wait: the image would be attached
// twice and its filesystem destroyed, or copied while it is written to. So every question has a deadline, and a device
// that does not answer is skipped only if it is proven to hold something else.
package loops
