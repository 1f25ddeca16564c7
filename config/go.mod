module github.com/quorate/quorate/config

go 1.26.0

require (
	github.com/fsnotify/fsnotify v1.10.1
	github.com/knadh/koanf/providers/confmap v1.0.1
	github.com/knadh/koanf/providers/env/v2 v2.0.2
	github.com/knadh/koanf/v2 v2.4.1
	github.com/quorate/quorate/config/field v0.0.0
	github.com/quorate/quorate/internal/patience v0.0.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	go.yaml.in/yaml/v3 v3.0.6
	pgregory.net/rapid v1.3.0
)

require (
	github.com/go-viper/mapstructure/v2 v2.4.0 // indirect
	github.com/knadh/koanf/maps v0.1.2 // indirect
	github.com/mitchellh/copystructure v1.2.0 // indirect
	github.com/mitchellh/reflectwalk v1.0.2 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace (
	github.com/quorate/quorate/config/field => ./field
	github.com/quorate/quorate/internal/patience => ../internal/patience
)
