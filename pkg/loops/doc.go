// Package loops finds the loop devices that hold a file.
//
// What a loop device holds is told by the filesystem that the file is on (loop(4), LOOP_GET_STATUS64 asks it
// for the file's attributes). Somebody else's may be on a server that does not answer, and must not hold up
// who looks for his own. But to overlook the device of an image is worse than to wait: the image would be
// attached twice and its filesystem destroyed, or copied while it is written to. So every question has a
// deadline, and a device that does not answer is passed over only if it is proven to hold something else.
package loops
