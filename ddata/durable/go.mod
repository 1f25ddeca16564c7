module github.com/quorate/quorate/ddata/durable

go 1.26.0

require (
	github.com/quorate/quorate/config/field v0.0.0
	github.com/quorate/quorate/ddata v0.0.0
	github.com/quorate/quorate/machine v0.0.0
	github.com/quorate/quorate/simulation v0.0.0
	github.com/stretchr/testify v1.12.1
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace (
	github.com/quorate/quorate/config/field => ../../config/field
	github.com/quorate/quorate/ddata => ..
	github.com/quorate/quorate/ddata/crdt => ../crdt
	github.com/quorate/quorate/discovery => ../../discovery
	github.com/quorate/quorate/downing => ../../downing
	github.com/quorate/quorate/fd => ../../fd
	github.com/quorate/quorate/gossip => ../../gossip
	github.com/quorate/quorate/internal/patience => ../../internal/patience
	github.com/quorate/quorate/machine => ../../machine
	github.com/quorate/quorate/membership => ../../membership
	github.com/quorate/quorate/simulation => ../../simulation
	github.com/quorate/quorate/transport => ../../transport
)
