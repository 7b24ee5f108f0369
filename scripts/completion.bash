# SPDX-License-Identifier: BSD-3-Clause
# Completion of tern and tern-machines for bash. Commands and options are those that their help has.

_tern_commands() {
	"${COMP_WORDS[0]}" help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'
}
_tern_help() { # COMMAND: what begins a line of its options, before the description
	"${COMP_WORDS[0]}" help "$1" 2>/dev/null | sed -n 's/^  \(-.*\)/\1/p' | sed 's/   *.*//'
}
_tern_options() { # COMMAND
	_tern_help "$1" | grep -oE -- '(^|[ ,])--?[a-z][a-z-]*'
}
_tern_valued() { # COMMAND: its options whose value is the next word
	_tern_help "$1" | grep -oE -- '--?[a-z][a-z-]* [^ ,-]' | sed 's/ .*//'
}

# The words that may follow an option, for those that have a list of them.
_tern_values() { # COMMAND OPTION
	case $1:$2 in
	run:--bind) echo core none ;;
	run:--survive) echo first survivors any ;;
	run:--signal) echo TERM INT HUP QUIT USR1 USR2 ALRM KILL ;;
	sim:--profile) "${COMP_WORDS[0]}" sim --profiles 2>/dev/null | sed 's/ .*//' ;;
	sim:--pattern) echo alltoall allreduce halo random ;;
	esac
}

# The number of the word that is the program of `tern run` or `tern sim`; nothing while options stand
# before it.
_tern_program() { # VALUED
	local i
	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) echo $((i + 1)) && return ;;
		-*)
			[[ ${COMP_WORDS[i + 1]-} == = ]] || ! grep -qxe "${COMP_WORDS[i]}" <<<"$1" ||
				i=$((i + 1))
			;;
		*) echo $i && return ;;
		esac
		while [[ ${COMP_WORDS[i + 1]-} == [=:] ]]; do # bash splits words there
			i=$((i + 2))
		done
	done
}

_tern() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} \
		command=${COMP_WORDS[1]} program valued values
	COMPREPLY=()
	if ((COMP_CWORD == 1)) || [[ $command == help ]]; then
		((COMP_CWORD <= 2)) || return
		mapfile -t COMPREPLY < <(compgen -W \
			"$(_tern_commands) help version --help --version" -- "$word")
		return
	fi
	valued=$(_tern_valued "$command")
	if [[ $command == run || $command == sim ]]; then
		program=$(_tern_program "$valued")
		if [[ $program && $program -lt $COMP_CWORD ]]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$word") # its arguments
			return
		fi
	fi
	[[ $word == = ]] && word=
	[[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD - 2]}
	values=$(_tern_values "$command" "$before")
	if [[ $values ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
		# a machine can be a file too
		[[ $before != --profile ]] ||
			mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word")
	elif [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_tern_options "$command")" -- "$word")
	elif [[ $command == run || $command == sim ]] && ! grep -qxe "$before" <<<"$valued"; then
		mapfile -t COMPREPLY < <(compgen -c -- "$word"; compgen -f -- "$word")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
}

_tern_machines() {
	local word=${COMP_WORDS[COMP_CWORD]}
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W --help -- "$word") # or a number
	elif ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -c -- "$word"; compgen -f -- "$word")
	elif [[ ${COMP_WORDS[2]##*/} == tern ]]; then
		COMP_WORDS=("${COMP_WORDS[@]:2}") COMP_CWORD=$((COMP_CWORD - 2))
		_tern
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
}
complete -o filenames -F _tern tern
complete -o filenames -F _tern_machines tern-machines
