# What a user installs, and what a release is made of.
VERSION = $(shell sed -n 's/.*QUERN_VERSION "\(.*\)"/\1/p' base/version.h)
SHARE := $(DESTDIR)$(PREFIX)/share
# Where zsh of Debian looks.
ZSH_COMPLETIONS ?= share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
# Where libraries go, as Debian's lib/x86_64-linux-gnu; and where Python looks.
LIBDIR ?= lib
PYTHON_FOLDER ?= $(if $(filter /usr,$(PREFIX)),lib/python3/dist-packages,share/quern)
# Everything that install may put anywhere, whichever libraries it was built with.
INSTALLED = $(NAMES:%=bin/quern-%) bin/quern $(NAMES:%=share/man/man1/quern-%.1) share/man/man1/quern.1 \
  lib/quern/quern-mpi.so lib/quern/quern-cuda.so \
  share/bash-completion/completions/quern $(ZSH_COMPLETIONS)/_quern \
  $(LIBDIR)/libquern.so $(LIBDIR)/libquern.so.0 $(LIBDIR)/libquern.so.$(VERSION) $(LIBDIR)/pkgconfig/quern.pc \
  include/quern.h share/man/man3/libquern.3 $(PYTHON_FOLDER)/quern.py

install: all install-library                ## commands, libquern, man pages and completion under PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE)/man/man1
	install -s $(BINS) $(DESTDIR)$(PREFIX)/bin
	$(if $(strip $(CUDA_BACKEND) $(MPI_BACKEND)),install -d $(DESTDIR)$(PREFIX)/lib/quern && install -s -m 644 $(CUDA_BACKEND) $(MPI_BACKEND) $(DESTDIR)$(PREFIX)/lib/quern)
	for n in $(filter-out quern,$(ON)); do $B/bin/quern-$$n --man >$(SHARE)/man/man1/quern-$$n.1 || exit 1; done
	$B/bin/quern --man >$(SHARE)/man/man1/quern.1
	install -d $(SHARE)/bash-completion/completions $(DESTDIR)$(PREFIX)/$(ZSH_COMPLETIONS)
	install -m 644 completion/quern.bash $(SHARE)/bash-completion/completions/quern
	install -m 644 completion/_quern $(DESTDIR)$(PREFIX)/$(ZSH_COMPLETIONS)
install-library: $(LIBQUERN)                ## libquern alone: header, library, pkg-config, its page, the Python module
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,$(LIBDIR)/pkgconfig include share/man/man3 $(PYTHON_FOLDER))
	install -s -m 644 $(LIBQUERN) $(DESTDIR)$(PREFIX)/$(LIBDIR)/libquern.so.$(VERSION)
	ln -sf libquern.so.$(VERSION) $(DESTDIR)$(PREFIX)/$(LIBDIR)/libquern.so.0
	ln -sf libquern.so.0 $(DESTDIR)$(PREFIX)/$(LIBDIR)/libquern.so
	install -m 644 bindings/quern.h $(DESTDIR)$(PREFIX)/include/quern.h
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' bindings/quern.pc.in \
	  >$(DESTDIR)$(PREFIX)/$(LIBDIR)/pkgconfig/quern.pc
	awk -v version=$(VERSION) -f bindings/man.awk bindings/quern.h >$(SHARE)/man/man3/libquern.3
	install -m 644 bindings/quern.py $(DESTDIR)$(PREFIX)/$(PYTHON_FOLDER)/quern.py
uninstall:                                  ## remove what install put there
	rm -f $(INSTALLED:%=$(DESTDIR)$(PREFIX)/%)
	for d in lib/quern share/quern; do [ ! -d $(DESTDIR)$(PREFIX)/$$d ] || rmdir --ignore-fail-on-non-empty $(DESTDIR)$(PREFIX)/$$d; done
dist:                                       ## quern-VERSION.tar.gz of the commit that is checked out
	git archive --prefix=quern-$(VERSION)/ -o quern-$(VERSION).tar.gz HEAD
deb: deps-build deps-deb debian/changelog   ## Debian packages in build/, without CUDA
	@mkdir -p $B && echo 'building the packages: details in $B/deb.log'
	@env MAKEFLAGS=-j$(shell nproc) DEB_OUT=$(abspath $B) debian/rules binary >$B/deb.log 2>&1 || { tail -n 20 $B/deb.log; exit 1; }
	@lintian --allow-root --fail-on error,warning $(DEB_FILES) && ls $(DEB_FILES)
check-deb: deb                              ## the packages in a clean Debian 12 (root): README's pipe
	@$(RUN) package
DEB_FILES = $(foreach p,quern libquern0 libquern-dev python3-quern,$B/$(p)_$(VERSION)_*.deb)
deps-deb: ; @B=$B sh tests/deps.sh $(DEBS_DEB)
# CHANGELOG.md in Debian's form.
debian/changelog: CHANGELOG.md base/version.h
	@awk -v who="$$(sed -n 's/^Maintainer: //p' debian/control)" -f debian/changelog.awk CHANGELOG.md >$@
.PHONY: install install-library uninstall dist deb check-deb deps-deb
