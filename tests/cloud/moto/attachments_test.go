package moto

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
)

// attachments maps volumes to the instances that they are attached to.
type attachments struct {
	mu    sync.Mutex
	nodes map[string]string
}

// refuses answers a request to attach an attached volume, and reports whether it did.
func (a *attachments) refuses(w http.ResponseWriter, form url.Values) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	volume := form.Get("VolumeId")
	node, attached := a.nodes[volume]
	if !attached || form.Get("Action") != "AttachVolume" {
		return false
	}
	w.WriteHeader(http.StatusBadRequest)
	_, _ = fmt.Fprintf(w,
		"<Response><Errors><Error><Code>VolumeInUse</Code><Message>%s is already attached to "+
			"%s</Message></Error></Errors></Response>", volume, node)
	return true
}

// note records the effect of an answered request.
func (a *attachments) note(form url.Values, code int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case code != http.StatusOK:
	case form.Get("Action") == "AttachVolume":
		a.nodes[form.Get("VolumeId")] = form.Get("InstanceId")
	case form.Get("Action") == "DetachVolume":
		delete(a.nodes, form.Get("VolumeId"))
	}
}
