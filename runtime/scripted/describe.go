// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/tidemill/tidemill/runtime"
)

var _ runtime.Described = (*sandbox)(nil)

// Describe implements [runtime.Described]. There are no images here: ids are made of what
// was asked for, so that the same is called the same.
func (s *sandbox) Describe() runtime.Description {
	var d runtime.Description
	add := func(service string, image runtime.Image) {
		if !given(image) {
			return
		}
		sum := sha256.Sum256([]byte(imageName(image)))
		id := "sha256:" + hex.EncodeToString(sum[:])
		facts := runtime.ImageFacts{Service: service, ID: id, Origin: runtime.ImageBuilt, Platform: "scripted/none"}
		if image.Ref != "" {
			facts.Ref, facts.Digest, facts.Origin = image.Ref, image.Ref+"@"+id, runtime.ImagePresent
		}
		d.Images = append(d.Images, facts)
	}
	add(s.box.spec.Runner, s.box.spec.Image)
	for _, service := range s.box.spec.Services {
		add(service.Name, service.Image)
	}
	return d
}
