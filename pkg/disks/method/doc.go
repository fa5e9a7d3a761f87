// Package method names the ways to make the data of a local volume unreadable. It is a leaf package, so that code that
// asks for a wipe does not depend on code that wipes.
package method
