package images

// agnhostFiles returns the files of an image with the suite's own helper. Only in this image does the suite require a
// name for a user ID: that of a user in a group that the pod does not specify.
func agnhostFiles(tools []File, agnhost string) []File {
	return with(tools,
		File{Path: passwd, Mode: 0o644, Text: someUsers + "user-defined-in-image:x:1000:1000::/:/bin/sh\n"},
		File{Path: group, Mode: 0o644,
			Text: someGroups + "user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"},
		File{Path: "agnhost", Mode: 0o755, Source: agnhost},
		File{Path: "agnhost-2", Link: "agnhost"},
	)
}

// with returns the files and more. A file of more replaces one with the same path.
func with(files []File, more ...File) []File {
	var all []File
	for _, file := range files {
		if !has(more, file.Path) {
			all = append(all, file)
		}
	}
	return append(all, more...)
}

func has(files []File, path string) bool {
	for _, file := range files {
		if file.Path == path {
			return true
		}
	}
	return false
}
