module github.com/quorate/quorate/allocation

go 1.26.0
