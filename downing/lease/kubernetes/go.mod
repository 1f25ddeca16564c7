module github.com/quorate/quorate/downing/lease/kubernetes

go 1.26.0

require (
	github.com/quorate/quorate/config/field v0.0.0
	github.com/quorate/quorate/discovery v0.0.0
	github.com/quorate/quorate/downing v0.0.0
	github.com/quorate/quorate/internal/patience v0.0.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require go.yaml.in/yaml/v3 v3.0.6 // indirect

replace (
	github.com/quorate/quorate/config/field => ../../../config/field
	github.com/quorate/quorate/discovery => ../../../discovery
	github.com/quorate/quorate/downing => ../..
	github.com/quorate/quorate/gossip => ../../../gossip
	github.com/quorate/quorate/internal/patience => ../../../internal/patience
)
