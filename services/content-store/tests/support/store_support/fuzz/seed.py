"""The site the generated calls work on: two trees with branches, translations, files, categories, and deleted rows."""

from __future__ import annotations

from store_support.calls import SEED

#: A second administrator copies pages with two levels below them.
COPIES_BRANCHES = 2

_MORE = """
INSERT INTO be_users (uid, pid, username, admin, uc) VALUES (2, 0, 'branches', 1, '{"copyLevels": 2}');
INSERT INTO pages (uid, pid, title, slug, sorting, perms_everybody, sys_language_uid, l10n_parent, l10n_source, hidden, deleted)
VALUES (12, 1, 'Park', '/park', 768, 31, 0, 0, 0, 0, 0), (120, 12, 'Trees', '/park/trees', 256, 31, 0, 0, 0, 0, 0),
  (101, 10, 'Desk', '/hall/desk', 512, 31, 0, 0, 0, 0, 0), (200, 20, 'Far', '/elsewhere/far', 256, 31, 0, 0, 0, 0, 0),
  (13, 1, 'Gone', '/gone', 1024, 31, 0, 0, 0, 0, 1), (32, 1, 'Parkanlage', '/parkanlage', 768, 31, 1, 12, 12, 0, 0);
INSERT INTO tt_content (uid, pid, header, sorting, sys_language_uid, l18n_parent, l10n_source, "CType", deleted)
VALUES (40, 11, 'Lanes', 256, 0, 0, 0, 'text', 0), (41, 12, 'Benches', 256, 0, 0, 0, 'text', 0),
  (42, 12, 'Bänke', 512, 1, 41, 41, 'text', 0), (43, 120, 'Oaks', 256, 0, 0, 0, 'text', 0),
  (44, 1000, 'Drawer', 256, 0, 0, 0, 'text', 0), (45, 200, 'Far', 256, 0, 0, 0, 'text', 0),
  (46, 101, 'Lamp', 256, 0, 0, 0, 'text', 0), (47, 1, 'Start', 256, 0, 0, 0, 'text', 0),
  (48, 12, 'Removed', 768, 0, 0, 0, 'text', 1), (49, 20, 'Removed too', 512, 0, 0, 0, 'text', 1),
  (60, 2, 'All languages', 256, -1, 0, 0, 'text', 0), (61, 10, 'All languages', 1024, -1, 0, 0, 'text', 0);
INSERT INTO sys_file_reference (uid, pid, uid_local, uid_foreign, tablenames, fieldname, sorting_foreign)
VALUES (51, 12, 3, 41, 'tt_content', 'image', 1), (52, 12, 4, 41, 'tt_content', 'image', 2),
  (53, 12, 3, 12, 'pages', 'media', 1), (71, 20, 3, 20, 'pages', 'media', 1);
UPDATE tt_content SET image = 2 WHERE uid = 41;
UPDATE pages SET media = 1 WHERE uid IN (12, 20);
INSERT INTO sys_category (uid, pid, title, sorting) VALUES (2, 12, 'Green', 256), (3, 10, 'Official', 256);
INSERT INTO sys_category_record_mm (uid_local, uid_foreign, tablenames, fieldname, sorting, sorting_foreign)
VALUES (1, 7, 'tt_content', 'categories', 1, 1), (2, 41, 'tt_content', 'categories', 1, 1),
  (3, 5, 'tt_content', 'categories', 1, 1), (3, 7, 'tt_content', 'categories', 2, 2);
UPDATE tt_content SET categories = 1 WHERE uid IN (41, 5);
UPDATE tt_content SET categories = 2 WHERE uid = 7;
UPDATE sys_category SET items = 1 WHERE uid IN (1, 2);
UPDATE sys_category SET items = 2 WHERE uid = 3;
SELECT count(*) FROM capture_take();
"""
FUZZ_SEED = SEED + _MORE
