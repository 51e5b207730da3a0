# What a user installs, and what a release is made of.
VERSION = $(shell sed -n 's/.*QUERN_VERSION "\(.*\)"/\1/p' base/version.h)
SHARE := $(DESTDIR)$(PREFIX)/share
# Where zsh of Debian looks.
ZSH_COMPLETIONS ?= share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
# Everything that install may put anywhere, whichever libraries it was built with.
INSTALLED = $(NAMES:%=bin/quern-%) bin/quern $(NAMES:%=share/man/man1/quern-%.1) share/man/man1/quern.1 \
  lib/quern/quern-mpi.so lib/quern/quern-cuda.so \
  share/bash-completion/completions/quern $(ZSH_COMPLETIONS)/_quern

install: all                                ## commands, man pages and completion under PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE)/man/man1
	install -s $(BINS) $(DESTDIR)$(PREFIX)/bin
	$(if $(strip $(CUDA_BACKEND) $(MPI_BACKEND)),install -d $(DESTDIR)$(PREFIX)/lib/quern && install -s -m 644 $(CUDA_BACKEND) $(MPI_BACKEND) $(DESTDIR)$(PREFIX)/lib/quern)
	for n in $(filter-out quern,$(ON)); do $B/bin/quern-$$n --man >$(SHARE)/man/man1/quern-$$n.1 || exit 1; done
	$B/bin/quern --man >$(SHARE)/man/man1/quern.1
	install -d $(SHARE)/bash-completion/completions $(DESTDIR)$(PREFIX)/$(ZSH_COMPLETIONS)
	install -m 644 completion/quern.bash $(SHARE)/bash-completion/completions/quern
	install -m 644 completion/_quern $(DESTDIR)$(PREFIX)/$(ZSH_COMPLETIONS)
uninstall:                                  ## remove what install put there
	rm -f $(INSTALLED:%=$(DESTDIR)$(PREFIX)/%)
	[ ! -d $(DESTDIR)$(PREFIX)/lib/quern ] || rmdir --ignore-fail-on-non-empty $(DESTDIR)$(PREFIX)/lib/quern
dist:                                       ## quern-VERSION.tar.gz of the commit that is checked out
	git archive --prefix=quern-$(VERSION)/ -o quern-$(VERSION).tar.gz HEAD
deb: deps-build deps-deb debian/changelog   ## a Debian package in build/, without CUDA
	@mkdir -p $B && echo 'building the package: details in $B/deb.log'
	@env MAKEFLAGS=-j$(shell nproc) DEB_OUT=$(abspath $B) debian/rules binary >$B/deb.log 2>&1 || { tail -n 20 $B/deb.log; exit 1; }
	@lintian --allow-root --fail-on error,warning $B/quern_$(VERSION)_*.deb && ls $B/quern_$(VERSION)_*.deb
check-deb: deb                              ## the package in a clean Debian 12 (root): README's pipe
	@$(RUN) package
deps-deb: ; @B=$B sh tests/deps.sh $(DEBS_DEB)
# CHANGELOG.md in Debian's form.
debian/changelog: CHANGELOG.md base/version.h
	@awk -v who="$$(sed -n 's/^Maintainer: //p' debian/control)" -f debian/changelog.awk CHANGELOG.md >$@
.PHONY: install uninstall dist deb check-deb deps-deb
