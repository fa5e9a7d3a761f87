// Package quota tests in the guest that directory volumes are limited if the filesystem has project quotas, which not
// every kernel supports.
package quota
