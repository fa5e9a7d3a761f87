package store

import "fmt"

// Unfetched says that what an entry is made from could not be had from the machines of others, whatever the tree is
// like. hack/outcome knows that by its first word.
func Unfetched(err error) error { return fmt.Errorf("INFRA: it could not be downloaded: %w", err) }
