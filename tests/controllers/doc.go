// Package controllers tests calls of Stowage's controllers in Kubernetes to a driver, through the real server on a real
// socket.
package controllers
