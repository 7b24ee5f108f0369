/* SPDX-License-Identifier: BSD-3-Clause */
/* The program tern-NAME, which `tern NAME` executes: COMMAND is NAME_main. */
int COMMAND(int argc, char **argv);

int main(int argc, char **argv)
{
	return COMMAND(argc, argv);
}
