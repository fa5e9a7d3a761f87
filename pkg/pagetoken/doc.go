// Package pagetoken makes the tokens with which enumerations in the order of handles continue (CSI's next_token). A
// token is the last handle that was returned. That handle may be gone when the token is used.
package pagetoken
