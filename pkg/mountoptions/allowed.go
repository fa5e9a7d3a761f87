package mountoptions

import (
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// common returns the options of every filesystem: of the mount, of the superblock, and those for other tools.
func common() []string {
	return append(Attributes(), strings.Fields("ro rw sync async dirsync lazytime nolazytime "+
		"defaults _netdev nofail context fscontext defcontext rootcontext")...)
}

// own returns a filesystem's options that concern only its own data. None names another device, and none lets a damaged
// filesystem stop the node. Other types have none.
func own(fsType string) []string {
	switch fsType {
	case "ext2", "ext3", "ext4":
		return strings.Fields("acl noacl auto_da_alloc noauto_da_alloc barrier nobarrier block_validity bsddf minixdf " +
			"bsdgroups sysvgroups grpid nogrpid " +
			"commit data dax delalloc nodelalloc dioread_lock dioread_nolock discard nodiscard errors=remount-ro grpquota " +
			"usrquota prjquota quota noquota " +
			"i_version init_itable noinit_itable inlinecrypt inode_readahead_blks journal_async_commit journal_checksum " +
			"nojournal_checksum journal_ioprio " +
			"max_batch_time min_batch_time max_dir_size_kb mblk_io_submit noload norecovery no_mbcache nombcache " +
			"resgid resuid stripe user_xattr nouser_xattr")
	case "xfs":
		return strings.Fields(
			"allocsize attr2 noattr2 bsdgroups sysvgroups grpid nogrpid dax discard nodiscard filestreams " +
				"gqnoenforce gquota grpquota ikeep noikeep inode32 inode64 largeio nolargeio logbsize logbufs noalign nouuid " +
				"norecovery " +
				"pqnoenforce pquota prjquota qnoenforce quota noquota sunit swidth swalloc uqnoenforce uquota usrquota wsync")
	case "btrfs":
		return strings.Fields(
			"acl noacl autodefrag noautodefrag barrier nobarrier clear_cache commit compress compress-force datacow nodatacow " +
				"datasum nodatasum discard nodiscard flushoncommit noflushoncommit max_inline metadata_ratio norecovery " +
				"nologreplay rescue " +
				"space_cache nospace_cache ssd nossd ssd_spread nossd_spread subvol subvolid thread_pool treelog notreelog " +
				"user_subvol_rm_allowed")
	}
	return nil
}

// Allowed returns the allowed options of a filesystem on a device. An entry is a name, which may have a value, or a
// name with its only allowed value.
func Allowed(fsType string) []string { return slices.Concat(own(fsType), common()) }

// CheckFor is Check for a filesystem on a device. It also refuses each option that is not Allowed: the author of a
// PersistentVolume may not name another device (logdev, journal_path), nor make a damaged filesystem stop the node
// (errors=panic). Kinds: Invalid, naming the option and what is allowed.
func CheckFor(fsType string, options []string) error {
	if err := Check(options); err != nil {
		return err
	}
	allowed := Allowed(fsType)
	for _, option := range options {
		name, _, _ := strings.Cut(option, "=")
		if !slices.Contains(allowed, name) && !slices.Contains(allowed, option) {
			return failure.Errorf(failure.Invalid, "mount option %q is not allowed for %s: possible are %s",
				secret.Option(option), fsType, strings.Join(allowed, ", "))
		}
	}
	return nil
}
