package backendtest

import (
	"regexp"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// healthChecks check the promises of HealthReporter.
func healthChecks(h Harness) []check {
	checks := []check{{"nothing is wrong with volumes that are well", wellVolumes}}
	if h.Damage != nil {
		checks = append(checks, check{"what is wrong is reported for the volume that is unwell", unwellVolume},
			check{"the unwell volumes are enumerated page by page", unwellPages})
	}
	return checks
}

func (w *world) unwell(page backends.Page) (handles []string, next string) {
	w.Helper()
	list, next, err := w.f.Health.ListHealth(w.ctx(), page)
	w.must("ListHealth", err)
	for _, v := range list {
		handles = append(handles, v.Handle)
		w.makesSense(v.Issues)
	}
	return handles, next
}

// makesSense checks the form of the issues.
func (w *world) makesSense(issues []backends.HealthIssue) {
	w.Helper()
	word := regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	if len(issues) == 0 {
		w.Errorf("an unwell volume has no issues")
	}
	for _, issue := range issues {
		known := []backends.HealthStatus{backends.Degraded, backends.Inaccessible, backends.DataLoss}
		if !slices.Contains(known, issue.Status) || !word.MatchString(issue.Reason) || issue.Message == "" {
			w.Errorf("the issue is %+v, want one of %v, a CamelCase word and a sentence", issue, known)
		}
		w.shown("an issue's message", issue.Message)
	}
}

func wellVolumes(w *world) {
	v := w.volume("one")
	for _, state := range []string{"new", "in use"} {
		if issues, err := w.f.Health.Health(w.ctx(), v.Handle); len(issues) != 0 || err != nil {
			w.Errorf("the volume, %s, has the issues %+v, %v; want none", state, issues, err)
		}
		if handles, next := w.unwell(backends.Page{}); len(handles) != 0 || next != "" {
			w.Errorf("%q are unwell and the token is %q, want none", handles, next)
		}
		_, err := w.n.Source(w.ctx(), w.attach(v, w.spec("one").Access.Types[0]))
		w.must("Source", err)
	}
	w.leave(v.Handle)
}

func unwellVolume(w *world) {
	well, unwell := w.volume("well"), w.volume("unwell")
	w.h.Damage(w.TB, w.instance, unwell.Handle)
	issues, err := w.f.Health.Health(w.ctx(), unwell.Handle)
	w.must("Health", err)
	w.makesSense(issues)
	if issues, err := w.f.Health.Health(w.ctx(), well.Handle); len(issues) != 0 || err != nil {
		w.Errorf("the volume beside it has the issues %+v, %v; want none", issues, err)
	}
	if handles, next := w.unwell(backends.Page{}); !slices.Equal(handles, []string{unwell.Handle}) || next != "" {
		w.Errorf("%q are unwell and the token is %q, want only %q", handles, next, unwell.Handle)
	}
	w.leave(unwell.Handle)
	w.must("deleting an unwell volume", w.c.Delete(w.ctx(), unwell.Handle))
	if handles, _ := w.unwell(backends.Page{}); len(handles) != 0 {
		w.Errorf("%q are unwell after it was deleted, want none", handles)
	}
}

func unwellPages(w *world) {
	want := map[string]bool{}
	for _, name := range []string{"one", "two", "three"} {
		w.volume("well beside " + name)
		v := w.volume(name)
		w.h.Damage(w.TB, w.instance, v.Handle)
		want[v.Handle] = true
	}
	token := ""
	for range 4 {
		page, next := w.unwell(backends.Page{Limit: 1, Token: token})
		for _, handle := range page {
			if !want[handle] {
				w.Errorf("%q is listed as unwell, again or without cause", handle)
			}
			delete(want, handle)
		}
		if token = next; token == "" {
			break
		}
	}
	if len(want) != 0 || token != "" {
		w.Errorf("at the end %v are missing and the token is %q, want none", want, token)
	}
	_, _, err := w.f.Health.ListHealth(w.ctx(), backends.Page{Limit: 1, Token: "nonsense"})
	w.fails("ListHealth with a foreign token", err, backends.Busy)
}
