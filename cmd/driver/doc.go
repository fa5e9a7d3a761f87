// Command stowage is the driver: it turns flags into configuration, connects the parts, and serves.
//
// Only this package reads the process's environment; all other packages get what they need passed in.
package main
