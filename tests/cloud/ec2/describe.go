package ec2

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The limits of pages and filters.
const (
	leastPage, mostPage = 5, 1000
	mostFilterValues    = 200
)

// query is the content of a Describe request.
type query struct {
	ids     []string
	prefix  string // of IDs
	filters map[string][]string
	limit   int // 0 for all
	token   string
	shape   string // must be the same for a token to be valid
}

// query reads a Describe request. known names the supported filters; one that ends in a colon is a prefix.
func (s *Server) query(p *params, prefix, idKey string, known ...string) query {
	q := query{ids: p.list(idKey), prefix: prefix, filters: map[string][]string{}, limit: p.integer("MaxResults"),
		token: p.text("NextToken")}
	for _, id := range q.ids {
		p.blame(malformed(prefix, id))
	}
	for i := 1; p.has(fmt.Sprintf("Filter.%d.Name", i)); i++ {
		name, values := p.text(fmt.Sprintf("Filter.%d.Name", i)), p.list(fmt.Sprintf("Filter.%d.Value", i))
		if !slices.ContainsFunc(known,
			func(k string) bool { return k == name || strings.HasSuffix(k, ":") && strings.HasPrefix(name, k) }) {
			p.blame(faultf("InvalidParameterValue", "The filter '%s' is invalid", name))
		}
		if len(values) == 0 || len(values) > mostFilterValues {
			p.blame(faultf("FilterLimitExceeded", "The filter '%s' has %d values, not 1 to %d", name, len(values),
				mostFilterValues))
		}
		q.filters[name] = values
	}
	switch {
	case p.has("MaxResults") && (q.limit < leastPage || q.limit > mostPage):
		p.blame(faultf("InvalidParameterValue",
			"Value (%d) for parameter maxResults is invalid. Expecting a value between %d and %d.", q.limit, leastPage,
			mostPage))
	case q.limit > 0 && len(q.ids) > 0:
		p.blame(faultf("InvalidParameterCombination", "The parameter %s cannot be used with the parameter maxResults", idKey))
	case len(q.ids) > mostPage:
		p.blame(faultf("InvalidParameterValue", "%d IDs are more than %d", len(q.ids), mostPage))
	}
	q.shape = fmt.Sprint(p.values.Get("Action"), q.filters, q.limit)
	return q
}

// filterable holds the values that filters match.
type filterable struct {
	fields map[string][]string
	tags   map[string]string
}

func (f filterable) matches(filters map[string][]string) bool {
	for name, patterns := range filters {
		values := f.fields[name]
		if key, ok := strings.CutPrefix(name, "tag:"); ok {
			if value, ok := f.tags[key]; ok {
				values = []string{value}
			}
		}
		if name == "tag-key" {
			values = slices.Collect(maps.Keys(f.tags))
		}
		if !slices.ContainsFunc(values, func(value string) bool {
			return slices.ContainsFunc(patterns, func(pattern string) bool { return wild(pattern, value) })
		}) {
			return false
		}
	}
	return true
}

// wild matches a filter's value: * stands for any characters, ? for one, and a backslash escapes them.
func wild(pattern, value string) bool {
	if !strings.ContainsAny(pattern, `*?\`) {
		return pattern == value
	}
	text := regexp.QuoteMeta(pattern)
	for _, pair := range [][2]string{{`\\\*`, "\x00a"}, {`\\\?`, "\x00b"}, {`\*`, `(?s:.*)`}, {`\?`, `(?s:.)`},
		{"\x00a", `\*`}, {"\x00b", `\?`}} {
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	return regexp.MustCompile(`^` + text + `$`).MatchString(value)
}

// shownAt returns the instant that an answer shows.
func (s *Server) shownAt() time.Time {
	lag := s.config.Lag
	if s.config.Unsteady && lag > 0 {
		lag = time.Duration(s.dice().Int64N(int64(lag)))
	}
	return s.now.Add(-lag)
}

// page calls show for each result on a page of a query, as it was Config.Lag ago.
func page[T any](s *Server, q query, things *store[T], look func(*T) (filterable, bool),
	show func(*T)) (next string, f *fault) {
	at := s.shownAt()
	for _, id := range q.ids {
		if things.then(id, at) == nil {
			code := map[string]string{"vol": "InvalidVolume.NotFound", "snap": "InvalidSnapshot.NotFound"}[q.prefix]
			return "", faultf(code, "The ID '%s' does not exist.", id)
		}
	}
	start, f := s.start(q, things.order)
	if f != nil {
		return "", f
	}
	if s.config.Scattered && q.limit > 0 && q.token == "" && len(things.order) > 0 {
		return s.follow(q, things.order[0]), nil
	}
	results, after := match(q, things, at, start, look)
	if s.config.Scattered {
		s.dice().Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
	}
	for _, thing := range results {
		show(thing)
	}
	if after == "" {
		return "", nil
	}
	return s.follow(q, after), nil
}

// match returns the results on a page of a query from an index on, and the ID with which the next page begins; empty if
// there is none.
func match[T any](q query, things *store[T], at time.Time, from int,
	look func(*T) (filterable, bool)) (results []*T, after string) {
	for _, id := range things.order[from:] {
		thing := things.then(id, at)
		if thing == nil || len(q.ids) > 0 && !slices.Contains(q.ids, id) {
			continue
		}
		if fields, ok := look(thing); !ok || !fields.matches(q.filters) {
			continue
		}
		if q.limit > 0 && len(results) == q.limit {
			return results, id
		}
		results = append(results, thing)
	}
	return results, ""
}

// follow returns the token of the page that begins with a resource.
func (s *Server) follow(q query, id string) string {
	token := fmt.Sprintf("%x/%s", len(s.pages), q.shape)
	s.pages[token] = id
	return token
}

// start returns the index at which a page begins.
func (s *Server) start(q query, order []string) (int, *fault) {
	if q.token == "" {
		return 0, nil
	}
	id, ok := s.pages[q.token]
	if !ok || !strings.HasSuffix(q.token, "/"+q.shape) {
		return 0, faultf("InvalidPaginationToken", "The token '%s' is invalid", q.token)
	}
	return slices.Index(order, id), nil
}

func (s *Server) describeVolumes(p *params) effect {
	q := s.query(p, "vol", "VolumeId", "volume-id", "status", "tag:", "tag-key", "attachment.instance-id",
		"attachment.status", "availability-zone", "snapshot-id")
	return func() (any, *fault) {
		var response volumesResponse
		next, f := page(s, q, s.volumes, func(v *volume) (filterable, bool) { return v.filterable(), true },
			func(v *volume) { response.Volumes = append(response.Volumes, v.xml(true)) })
		response.Next = next
		return response, f
	}
}

func (v *volume) filterable() filterable {
	fields := map[string][]string{"volume-id": {v.id}, "status": {v.state}, "availability-zone": {v.zone},
		"snapshot-id": {v.snapshot}}
	for _, a := range v.attachments {
		fields["attachment.instance-id"] = append(fields["attachment.instance-id"], a.instance)
		fields["attachment.status"] = append(fields["attachment.status"], a.state)
	}
	return filterable{fields, v.tags}
}

func (s *Server) describeSnapshots(p *params) effect {
	if owners := p.list("Owner"); len(owners) > 0 && !slices.Equal(owners, []string{"self"}) {
		p.blame(faultf("InvalidUserID.Malformed", "There is no owner here but self"))
	}
	q := s.query(p, "snap", "SnapshotId", "snapshot-id", "volume-id", "status", "tag:", "tag-key")
	return func() (any, *fault) {
		var response snapshotsResponse
		next, f := page(s, q, s.snapshots, func(n *snapshot) (filterable, bool) {
			return filterable{map[string][]string{"snapshot-id": {n.id}, "volume-id": {n.volume}, "status": {n.state}}, n.tags},
				true
		}, func(n *snapshot) { response.Snapshots = append(response.Snapshots, n.xml()) })
		response.Next = next
		return response, f
	}
}
