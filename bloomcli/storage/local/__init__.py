"""The local file system: its files are read with pread(2), and replaced so that no fault harms them.

A replacement takes these steps; the module that does each is on the right:

     1  sweep: remove what killed runs have left in the directory                      temporary
     2  compare the source with its checksum file, .NAME.crc, if it has one            hadoop_crc
     3  make a hidden temporary file in the target's directory, and lock it            temporary, locks
     4  copy ranges of the source, write new bytes, sync them meanwhile                new_file, copying
     5  set mode, owner and extended attributes                                        attributes
     6  sync the temporary file; verify it                                             atomic
     7  lock the file that has the target's name; is the source unchanged?             locks, source
     8  write the new checksum file under a temporary name; rename the old one         new_checksums
     9  give the temporary file the target's name                                      temporary
        - the target is the source: exchange both in one step, look at what came out,
          and exchange them back if it isn't the source                                exchange
        - the target may be overwritten: rename
        - it may not: link, which fails where there is such a file
    10  remove the old file, sync the directory                                        temporary, atomic
    11  give the new checksum file its name (after a failure: the old one)             new_checksums

`atomic` has the whole sequence, `write_errors` makes errors of what the system refuses. At whatever step a run fails
or is stopped, the target is the old file or the new one. Between steps 8 and 11 it has no checksum file: such a file
can be read, one whose checksums are out of date can't. A killed run leaves temporary files. Their names show
(`temporary_names`) which files they belong to; the next sweep removes them, or puts checksums back that fit.

The rest is for reading: `source`, `paths` (names, links, ``file:`` URIs), `listing` and `patterns`. `store`
implements the interface in `bloomcli.storage.base` with all of these.
"""
