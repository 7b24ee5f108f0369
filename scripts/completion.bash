# SPDX-License-Identifier: BSD-3-Clause
# Completion of the command tern for bash. Commands and options are those that its help has.

_tern_commands() {
	"${COMP_WORDS[0]}" help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'
}
_tern_options() { # COMMAND: what begins a line, before its description
	"${COMP_WORDS[0]}" help "$1" 2>/dev/null | sed -n 's/^  \(-.*\)/\1/p' | sed 's/   *.*//' |
		grep -oE -- '(^|[ ,])--?[a-z][a-z-]*'
}

# The words that may follow an option, for those that have a list of them.
_tern_values() { # OPTION
	case $1 in
	--bind) echo core none ;;
	--survive) echo first survivors any ;;
	esac
}

# The number of the word that is the program of `tern run`; nothing while options stand before it.
_tern_program() {
	local i
	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) echo $((i + 1)) && return ;;
		-n | -np | --bind | --env | --hosts | --hostfile | --ssh) i=$((i + 1)) ;;
		= | -*) [[ ${COMP_WORDS[i + 1]} == = ]] && i=$((i + 2)) ;;
		*) echo $i && return ;;
		esac
	done
}

_tern() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} \
		command=${COMP_WORDS[1]} program
	COMPREPLY=()
	if ((COMP_CWORD == 1)) || [[ $command == help ]]; then
		((COMP_CWORD <= 2)) || return
		mapfile -t COMPREPLY < <(compgen -W "$(_tern_commands) help --help --version" -- \
			"$word")
		return
	fi
	if [[ $command == run ]]; then
		program=$(_tern_program)
		if [[ $program && $program -lt $COMP_CWORD ]]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$word") # its arguments
			return
		fi
	fi
	[[ $word == = ]] && word=
	[[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD - 2]}
	if [[ $(_tern_values "$before") ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_tern_values "$before")" -- "$word")
	elif [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_tern_options "$command")" -- "$word")
	elif [[ $command == run && $before != --hostfile ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$word"; compgen -f -- "$word")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
}
complete -o filenames -F _tern tern
