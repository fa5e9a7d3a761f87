// Package pace keeps requests within what a cloud allows, so that next to none is refused for its rate. Clouds give
// each account so many requests of a kind at once, and so many a second; one that is refused counts all the same, and
// delays everybody else's.
package pace
