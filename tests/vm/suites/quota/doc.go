// Package quota proves in the guest that directory volumes are bounded where the filesystem has project quotas: not
// every kernel has them.
package quota
