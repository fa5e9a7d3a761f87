package doctor

// All examines every claim, volume, node and pod, and returns the findings that are not Fine.
func (c *Cluster) All() (found []Finding) {
	for i := range c.Claims {
		found = append(found, c.Claim(c.Claims[i].Namespace, c.Claims[i].Name)...)
	}
	for i := range c.Volumes {
		found = append(found, c.volumeState(&c.Volumes[i])...)
	}
	for i := range c.Nodes {
		found = append(found, c.Node(c.Nodes[i].Name)...)
	}
	for i := range c.Pods {
		if p := &c.Pods[i]; len(claimsOf(p)) > 0 && (!started(p) || p.DeletionTimestamp != nil) {
			found = append(found, c.podState(p)...)
		}
	}
	var ill []Finding
	for _, f := range found {
		if f.Verdict != Fine {
			ill = append(ill, f)
		}
	}
	return ill
}
