"""The local file system: reads files with pread(2), and replaces them so that no fault damages them.

Steps of a replacement, each with its modules on the right:

     1  sweep: remove temporary files of killed runs from the directory                temporary
     2  compare the source with its checksum file, .NAME.crc, if it has one            hadoop_crc
     3  make a hidden temporary file in the target's directory, and lock it            temporary, locks
     4  copy ranges of the source, write new bytes, sync them in the background        copying
     5  set owner, access control list, mode and extended attributes                   attributes
     6  sync the temporary file; verify it                                             atomic
     7  lock the file that has the target's name; check that the source is unchanged   locks, source
     8  write the new checksum file under a temporary name; rename the old one         atomic
     9  give the temporary file the target's name                                      temporary
        - the target is the source: exchange both in one step, check that the file
          that lost the name is the source, exchange them back if it isn't             temporary
        - the target may be overwritten: rename
        - it may not: link, which fails if a file has the name
    10  remove the old file, sync the directory                                        temporary, atomic
    11  give the new checksum file its name (after a failure: the old one)             atomic

`atomic` runs the sequence, and converts the system's errors. Whichever step fails or is interrupted,
the target is the old file or the new one. Between steps 8 and 11 it has no checksum file: Hadoop reads a file without
checksums, but not one whose checksums are out of date. A killed run leaves temporary files. Their names
(`temporary`) show which files they belong to. The next sweep removes them, or restores checksums that match.

The other modules read: `source`, `paths` (names, links, ``file:`` URIs) and `store`, which lists files and implements
the interface in `bloomcli.storage.base` with all of these.
"""
