echo "arrived: Aurora" >log.txt
