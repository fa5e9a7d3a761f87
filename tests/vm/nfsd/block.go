package nfsd

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/stowage-csi/stowage/tests/vm/inside"
)

// How is the treatment of packets to the server.
type How string

// The treatments.
const (
	Drop  How = "drop"                   // they are lost, as when the server or the network is down: clients wait
	Reset How = "reject with tcp reset"  // they are refused, as when no process listens
	table     = "inet stowage_vm_blocks" // the firewall's table, for these rules only
)

// Block blocks packets to the server's NFS and mountd ports, including those of existing connections.
func Block(ctx context.Context, how How) error {
	if err := inside.Check(); err != nil {
		return err
	}
	return nft(ctx, fmt.Sprintf("table %[1]s\nflush table %[1]s\n"+
		"table %[1]s {\n chain input {\n  type filter hook input priority 0;\n  meta l4proto tcp tcp dport { %[2]d, %[3]d "+
		"} %[4]s\n }\n}\n",
		table, Port, MountPort, how))
}

// Unblock lets packets through again. Without a Block it has no effect.
func Unblock(ctx context.Context) error {
	if err := inside.Check(); err != nil {
		return err
	}
	return nft(ctx, fmt.Sprintf("table %[1]s\ndelete table %[1]s\n", table))
}

func nft(ctx context.Context, rules string) error {
	cmd := exec.CommandContext(ctx, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s\n%s", err, out, rules)
	}
	return nil
}
