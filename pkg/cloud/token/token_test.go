package token

import (
	"fmt"
	"regexp"
	"testing"
	"testing/synctest"
	"time"
)

func TestTokensFollowFromNames(t *testing.T) {
	var one, other Tokens
	form := regexp.MustCompile(`^[0-9a-f]{64}$`)
	seen := map[string]string{}
	for _, name := range []string{"pvc-1", "pvc-2", "", "1/pvc-1", "0/pvc-1", "näme\n"} {
		for turn := range 4 {
			token := one.Of(name)
			if !form.MatchString(token) || token != one.Of(name) || token != other.Of(name) {
				t.Errorf("turn %d of %q has the tokens %q and, after a restart, %q", turn, name, token, other.Of(name))
			}
			if before, ok := seen[token]; ok {
				t.Errorf("turn %d of %q has the token of %s", turn, name, before)
			}
			seen[token] = fmt.Sprintf("turn %d of %q", turn, name)
			one.Turn(name, token)
			one.Turn(name, token)
			other.Turn(name, token)
		}
	}
}

func TestDoubtsLastUntilTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tokens Tokens
		token := tokens.Of("pvc-1")
		first := tokens.Doubt(token)
		time.Sleep(time.Minute) //nolint:forbidigo // The clock is the test's own.
		if again := tokens.Doubt(token); time.Since(again) != time.Minute || again != first {
			t.Errorf("a minute later it is in doubt for %v", time.Since(again))
		}
		tokens.Turn("pvc-1", token)
		if since := tokens.Doubt(tokens.Of("pvc-1")); time.Since(since) != 0 || len(tokens.doubts) != 1 {
			t.Errorf("the next token is in doubt for %v, of %d", time.Since(since), len(tokens.doubts))
		}
	})
}

func TestPromisesLastUntilTheTurn(t *testing.T) {
	for name, end := range map[string]func(tokens *Tokens, token string){
		"until the creation has ended": func(tokens *Tokens, token string) { tokens.Promise(token, "") },
		"until the turn":               func(tokens *Tokens, token string) { tokens.Turn("pvc-1", token) },
	} {
		t.Run(name, func(t *testing.T) {
			var tokens Tokens
			token := tokens.Of("pvc-1")
			if id, ok := tokens.Promised(token); ok {
				t.Errorf("at first %q is promised, want nothing", id)
			}
			tokens.Promise(token, "vol-1")
			if id, ok := tokens.Promised(token); !ok || id != "vol-1" {
				t.Errorf("promised is %q (%v), want vol-1", id, ok)
			}
			end(&tokens, token)
			if id, ok := tokens.Promised(token); ok {
				t.Errorf("afterwards %q is promised, want nothing", id)
			}
		})
	}
}

func TestTurnsAreForgottenInTime(t *testing.T) {
	var tokens Tokens
	for i := range 2 * keep {
		name := fmt.Sprint(i)
		tokens.Turn(name, tokens.Of(name))
	}
	if len(tokens.turns) > keep {
		t.Errorf("%d turns are remembered, want %d", len(tokens.turns), keep)
	}
}
