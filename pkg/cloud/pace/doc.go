// Package pace keeps requests within a cloud's rate limits, so that the cloud refuses next to none. Clouds grant each
// account a burst and a rate per kind of request. A refused request counts too, and delays the requests of all others.
package pace
