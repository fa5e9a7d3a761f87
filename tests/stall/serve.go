package stall

import (
	"bufio"
	"fmt"
	"os"
	"slices"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// serveWord is the argument that makes a test program a server; the directory and the place follow.
const serveWord = "serve-a-directory-that-stalls"

// Main serves, and does not return, if this program was started as a server.
func Main() {
	at := slices.Index(os.Args, serveWord)
	if at < 0 {
		return
	}
	if err := serve(os.Args[at+1], os.Args[at+2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve serves until its input ends, and obeys the orders in it: a request and its number, one line each.
func serve(dir, place string) error {
	t := &trap{}
	root := &fs.LoopbackRoot{Path: dir}
	top := &node{fs.LoopbackNode{RootData: root}, t}
	root.RootNode = top
	// The kernel caches nothing: it asks each time.
	server, err := fs.Mount(place, top,
		&fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true, AllowOther: true, FsName: "stall",
			Name: "stall"}})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "serving")
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		var request Request
		var number int
		if _, err := fmt.Sscan(orders.Text(), &request, &number); err != nil {
			return err
		}
		if request == counted {
			fmt.Fprintln(os.Stdout, t.requests())
			continue
		}
		t.set(request, number, os.Stdout)
	}
	return server.Unmount()
}
