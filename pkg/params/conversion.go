package params

// Conversion is the part of a class that allows a volume another volume mode than its source has.
type Conversion struct {
	Allow bool `param:"allowVolumeModeChange" doc:"Let a volume of volumeMode Filesystem be a clone or a restored snapshot of one of volumeMode Block, whose contents are whatever its users wrote: a crafted filesystem is the kernel's to withstand. For classes of those who may be trusted, such as backup programs."`
}
