// Package strictyaml reads configuration files, and refuses what it would not use: an operator who wrote something that
// has no effect must know.
package strictyaml
