/* pipelines/ablation/ablation_commands.h -- inside ablations only: which command does a unit of work, and with which options. */
#ifndef PIPELINES_ABLATION_COMMANDS_H
#define PIPELINES_ABLATION_COMMANDS_H

#include "pipelines/ablation/ablation_run.h"

enum { ABLATION_FIRST_SEED = 1234 };
enum ablation_activity { ABLATION_CURATE, ABLATION_TRAIN, ABLATION_EVAL };

struct ablation_unit {
    enum ablation_activity activity;
    int number, seed; /* of a group; or of a variant, and a seed from 0 */
};

/* The folder of a unit, and a file in it. */
void ablation_unit_folder(const struct ablation *a, const struct ablation_unit *u, char path[4096]);
void ablation_unit_file(const struct ablation *a, const struct ablation_unit *u, const char *name, char path[4300]);
/* The name of its command: "train". */
const char *ablation_command_name(const struct ablation_unit *u);
/* Adds the words after the command's name, whose bytes are in mem, and writes the files that they name.  ERR_IO, ERR_NOMEM. */
int ablation_command(struct opt_list *args, struct arena *mem, const struct ablation_conf *c, const struct ablation_result *r,
                     const struct ablation_unit *u, struct err *e);
#endif
