// Package placeholder has the marks in a parameter's value that are filled in when a volume is made, such as {{
// .PVCName }}.
//
// Backends fill them in, and controllers that make volumes before there is a claim refuse those that name one: each
// mark is known here, and nowhere else.
package placeholder
