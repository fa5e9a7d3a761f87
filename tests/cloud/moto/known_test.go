package moto

// conformanceFaults lists the checks of the conformance suite that moto fails.
func conformanceFaults() []fault {
	return []fault{
		{"Attach/detaching_from_an_empty_node_detaches_everywhere",
			"its DetachVolume fails without an instance, which EC2 does not ask for"},
	}
}

// answerFaults lists the questions that moto answers differently from EC2.
func answerFaults() []fault {
	return []fault{
		{"a new volume", "it shows no throughput, of which a gp3 volume has 125 unless asked for more"},
		{"a volume twice with one token", "it ignores ClientToken"},
		{"a volume in no zone", "it takes any text for a zone"},
		{"a volume with too many operations a second", "it checks no limit of a type"},
		{"more operations a second", "its ModifyVolume ignores Iops"},
		{"grow beyond all limits", "it checks no limit of a type"},
		{"shrink a volume", "it lets ModifyVolume shrink"},
		{"restore a snapshot to a smaller one", "it lets a volume be smaller than its snapshot"},
		{"delete what is no ID", "it does not look at the form of IDs"},
		{"attach twice to one instance", "its AttachVolume never refuses"},
		{"attach to a second instance", "its AttachVolume never refuses"},
		{"attach with a name that is taken", "its AttachVolume never refuses"},
		{"attach in another zone", "its AttachVolume never refuses"},
		{"detach what is not attached",
			"it says InvalidAttachment.NotFound of a volume that is available, where EC2 says IncorrectState; the backend " +
				"takes both for detached"},
		{"copy a volume", "it has no CopyVolumes, and answers 500 with a page of HTML"},
		{"a page", "it ignores MaxResults and gives no NextToken"},
	}
}
