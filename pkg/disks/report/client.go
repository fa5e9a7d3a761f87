package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client talks to the process that opens disks.
type Client struct{ http *http.Client }

// NewClient returns a client of the socket. It connects on demand.
func NewClient(socket string) *Client {
	dialer := &net.Dialer{}
	return &Client{&http.Client{
		Timeout: longPoll + headers,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "unix", socket)
			},
			MaxIdleConns:    2,
			IdleConnTimeout: time.Minute,
		},
	}}
}

// State returns the state once its revision differs from after, or after a while.
func (c *Client) State(ctx context.Context, after string) (State, error) {
	var state State
	text, err := c.do(ctx, http.MethodGet, statePath+"?after="+url.QueryEscape(after), nil)
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		return State{}, fmt.Errorf("ask what disks there are: %w", err)
	}
	return state, nil
}

// Want sends the offers and the wanted deletions. It fails with ErrOlder if another agent has read a newer state.
func (c *Client) Want(ctx context.Context, w Wanted) error {
	text, err := json.Marshal(w)
	if err == nil {
		_, err = c.do(ctx, http.MethodPut, wantedPath+"?"+w.Source.query(), text)
	}
	if err != nil {
		return fmt.Errorf("say what is offered and to be deleted: %w", err)
	}
	return nil
}

func (c *Client) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://disks"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // It was read.
	text, err := io.ReadAll(io.LimitReader(response.Body, mostBytes))
	switch said := strings.TrimSpace(string(text)); {
	case err != nil || response.StatusCode == http.StatusOK:
	case response.StatusCode == http.StatusConflict:
		err = fmt.Errorf("%w: %s", ErrOlder, strings.TrimPrefix(said, ErrOlder.Error()+": "))
	default:
		err = fmt.Errorf("%s: %s", response.Status, said)
	}
	return text, err
}
