# Reports what this shell runs to the box's host, by small files in its spool: each line that is
# typed, or the command of `bash -c`. It starts no program.
#
# In ~/.bashrc of a box, or for every `bash -c` by env.set.BASH_ENV in its policy:
#   . /etc/h5i/hook.bash

if [[ -d /run/h5i/spool && -z ${__h5i_number-} ]]; then
    __h5i_number=0 __h5i_ready= __h5i_begun= __h5i_steps=0

    # A command begins: $1, whose first word is $2.
    __h5i_begin() {
        __h5i_number=$((__h5i_number + 1))
        { {
            printf 'h5i-command 1\nshell %s\nnumber %s\nprogram %s\nkind ' $$ "$__h5i_number" "$2"
            builtin type -t -- "$2" || printf '\n'
            printf '\n%s' "$1"
        } >|"/run/h5i/spool/$$-$__h5i_number-b"; } 2>/dev/null
    }

    # It is over, with exit code $1, and ran as $2 says.
    __h5i_end() {
        { printf 'h5i-command 1\nshell %s\nnumber %s\nstatus %s\nform %s\n' \
            $$ "$__h5i_number" "$1" "$2" >|"/run/h5i/spool/$$-$__h5i_number-e"; } 2>/dev/null
    }

    # The first word of $1, if it is a plain one.
    __h5i_word() {
        local text=$1
        text=${text#"${text%%[![:space:]]*}"}
        text=${text%%[[:space:]\;\&\|\(\)\<\>]*}
        case $text in
        *[\$\`\"\'\\=*?\[\{\~!#]*) REPLY= ;;
        *) REPLY=$text ;;
        esac
    }

    if [[ $- == *i* ]]; then
        # Before every command of a line; the first one tells that the line begins.
        __h5i_debug() {
            [[ -n ${COMP_LINE-} || -n ${READLINE_LINE-} ]] && return
            __h5i_steps=$((__h5i_steps + 1))
            [[ -n $__h5i_ready ]] || return
            local REPLY
            __h5i_ready= __h5i_begun=1 __h5i_steps=1
            __h5i_word "$1"
            __h5i_begin "$1" "$REPLY"
        }
        # Before every prompt. The second step is this one.
        __h5i_before() {
            local status=$? parts=$1 form=other
            if [[ -n $__h5i_begun ]]; then
                # With a job in the background, what starts and ends need not be this command's.
                if ((__h5i_steps == 2 && parts == 1)) && [[ -z ${!-} ]]; then
                    form=program
                fi
                __h5i_end "$status" "$form"
                __h5i_begun=
            fi
            __h5i_ready=
            return "$status"
        }
        __h5i_after() {
            __h5i_ready=1
        }
        PROMPT_COMMAND='__h5i_before "${#PIPESTATUS[@]}"'"${PROMPT_COMMAND:+; $PROMPT_COMMAND}"'; __h5i_after'
        trap '__h5i_debug "$BASH_COMMAND"' DEBUG
    elif [[ -n ${BASH_EXECUTION_STRING-} && -z ${H5I_REPORTED-} ]]; then
        # What this one starts is its own command's affair.
        export H5I_REPORTED=$$
        __h5i_exit() {
            { local -; set +x; } 2>/dev/null
            __h5i_end "$1" shell
        }
        __h5i_string() {
            local REPLY
            __h5i_word "$BASH_EXECUTION_STRING"
            __h5i_begin "$BASH_EXECUTION_STRING" "$REPLY"
        }
        __h5i_string
        trap '__h5i_exit "$?"' EXIT
    fi
fi
