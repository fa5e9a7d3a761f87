// Package pagetoken makes the tokens with which enumerations in the order of handles go on (CSI's next_token): the last
// handle that was returned. It need not be there any more when the token is used.
package pagetoken
