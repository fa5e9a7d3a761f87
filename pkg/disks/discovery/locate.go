package discovery

import "context"

// Locate returns the nodes of the devices whose volumes have the names, even if no rule selects them. It omits a device
// that does not report its identity in time, and devices that report the same identity.
func Locate(ctx context.Context, names map[string]bool) (map[string]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	all, err := blocks()
	if err != nil {
		return nil, err
	}
	type answer struct{ name, node string }
	answers := make(chan answer, len(all))
	for _, b := range all {
		go func() {
			name, err := NameAt(ctx, b.major, b.minor)
			if err != nil {
				name = ""
			}
			answers <- answer{name, b.node()}
		}()
	}
	nodes, number := map[string]string{}, map[string]int{}
	for range all {
		a := <-answers
		number[a.name]++
		if names[a.name] {
			nodes[a.name] = a.node
		}
	}
	for name := range nodes {
		if number[name] > 1 {
			delete(nodes, name)
		}
	}
	return nodes, nil
}
