// Package controllers tests what controllers of Kubernetes ask a driver for, over the real edge on a real socket.
package controllers
